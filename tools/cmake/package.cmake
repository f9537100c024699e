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
# Manual pages are made of --help when the package is: the programs are there then.
foreach(program_summary "tetrad@distributed wide-column database server that speaks CQL" "tetractl@asks and orders a Tetrad node")
  string(REPLACE "@" ";" program_summary "${program_summary}")
  list(POP_FRONT program_summary program summary)
  install(CODE "execute_process(COMMAND python3 ${CMAKE_SOURCE_DIR}/tools/cmake/man_page.py $<TARGET_FILE:${program}> ${PROJECT_VERSION}
    \"${summary}\" ${package_files}/${program}.1.gz COMMAND_ERROR_IS_FATAL ANY)")
  install(FILES ${package_files}/${program}.1.gz DESTINATION share/man/man1)
endforeach()
install(FILES LICENSE DESTINATION share/doc/tetrad RENAME copyright)
# README.md and all that is reached from it by links, in the same folders; tests/package/run follows them.
foreach(document
    README.md ARCHITECTURE.md BENCHMARKS.md CHANGELOG.md CONTRIBUTING.md DECISIONS.md LICENSE RULES.md
    conf/README.md docker/README.md
    base/README.md partitioner/README.md storage/README.md replication/README.md server/README.md
    cql/README.md cql/types/README.md cql/protocol/README.md
    tests/README.md tests/applications/README.md tests/conformance/README.md tests/drivers/README.md
    tests/simulation/README.md)
  get_filename_component(folder ${document} DIRECTORY)
  install(FILES ${document} DESTINATION share/doc/tetrad/${folder})
endforeach()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME tetrad)
set(CPACK_PACKAGE_CONTACT "the authors of Tetrad <tetrad@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "distributed wide-column database server that speaks CQL")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
"Tetrad is a database for clients of Apache Cassandra: drivers and cqlsh
connect to it over the native protocol, versions 3 to 5. Every row is on up to
four nodes of each data center; tables split, move and repair themselves.
.
The package has the server, a systemd unit that is not started by itself, and
tetractl, which takes the words of nodetool.")
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
