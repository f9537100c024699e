# The Debian package: cpack -G DEB in the folder of the build. conf/debian has the unit and the scripts.
set(package_files ${CMAKE_BINARY_DIR}/package-files)
file(READ ${CMAKE_SOURCE_DIR}/conf/tetrad.yaml configuration)
string(REGEX REPLACE "\ndata_directory: [^\n]*" "\ndata_directory: /var/lib/tetrad" configuration "${configuration}")
if(NOT configuration MATCHES "\ndata_directory: /var/lib/tetrad\n")
  message(FATAL_ERROR "conf/tetrad.yaml has no line data_directory")
endif()
file(WRITE ${package_files}/tetrad.yaml "${configuration}")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/conf/tetrad.yaml)

set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)  # the programs are built, whatever else is
install(TARGETS tetrad tetractl RUNTIME DESTINATION bin)
install(FILES ${package_files}/tetrad.yaml DESTINATION /etc/tetrad)
install(FILES conf/debian/tetrad.service DESTINATION /lib/systemd/system)
install(FILES tools/tetractl/completion.bash DESTINATION share/bash-completion/completions RENAME tetractl)
install(FILES README.md DESTINATION share/doc/tetrad)
install(FILES conf/README.md DESTINATION share/doc/tetrad RENAME options.md)
install(FILES LICENSE DESTINATION share/doc/tetrad RENAME copyright)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME tetrad)
set(CPACK_PACKAGE_CONTACT "the authors of Tetrad <tetrad@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "distributed wide-column database server that speaks CQL")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION database)
set(CPACK_DEBIAN_PACKAGE_DEPENDS passwd)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA
  ${CMAKE_SOURCE_DIR}/conf/debian/postinst ${CMAKE_SOURCE_DIR}/conf/debian/prerm
  ${CMAKE_SOURCE_DIR}/conf/debian/postrm ${CMAKE_SOURCE_DIR}/conf/debian/conffiles)
include(CPack)
