// SPDX-License-Identifier: Apache-2.0
// A layer between a process and its disk that knows what a cut of the power would leave. The loader
// puts it before the C library (LD_PRELOAD); it notes, beside the data, what was synced and which
// changes of names a folder had when it was. The notes outlive a kill -9, after which
// forgetful_disk.py makes the data what the disk would have. Nothing is really synced.
//
//   FORGETFUL_DATA     the folder that is watched: an absolute path, without links
//   FORGETFUL_NOTES    an absolute path on the same file system: journal, kept/ (what had a name),
//                      undo/ (bytes that were overwritten)
//   FORGETFUL_BOOT_ID  a file that is read in place of the machine's boot id
//   FORGETFUL_SYNC_US  how long a sync takes (1000)
//   FORGETFUL_SYNCS    all; none: a sync does nothing (a mistake to be found)
//
// The journal has a line for each change, files and folders by inode:
//
//   file F I NAME           a file was made in folder F
//   folder F I NAME         a folder
//   name F I NAME           another name for a file
//   gone F I NAME           a name was removed
//   moved F G I NAME/NEW    from folder F to folder G
//   overwritten I OFFSET SIZE UNDO   the bytes of undo/UNDO stood at OFFSET of SIZE bytes
//   shortened I OFFSET SIZE UNDO     to OFFSET
//   synced I SIZE LINES US  a file has SIZE bytes on the disk, with what LINES lines tell; begun at
//                           US of the monotonic clock
//   names F LINES           a folder was synced
//   unfollowed WHAT         something that this layer does not know: the test is worth nothing
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <dlfcn.h>
#include <fcntl.h>
#include <mutex>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

namespace {

constexpr const char* kBootId = "/proc/sys/kernel/random/boot_id";
constexpr size_t kDescriptorsMax = 1 << 16;

// The kernel itself: the C library's names lead back here.
namespace raw {

int open(int folder, const char* path, int flags, mode_t mode = 0) {
  return static_cast<int>(::syscall(SYS_openat, folder, path, flags, mode));
}
int close(int file) { return static_cast<int>(::syscall(SYS_close, file)); }
ssize_t write(int file, const void* bytes, size_t size) {
  return ::syscall(SYS_write, file, bytes, size);
}
int rename(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) {
  return static_cast<int>(::syscall(SYS_renameat2, from_folder, from, to_folder, to, flags));
}
int link(int from_folder, const char* from, int to_folder, const char* to, int flags) {
  return static_cast<int>(::syscall(SYS_linkat, from_folder, from, to_folder, to, flags));
}
int unlink(int folder, const char* path, int flags) {
  return static_cast<int>(::syscall(SYS_unlinkat, folder, path, flags));
}
int make_folder(int folder, const char* path, mode_t mode) {
  return static_cast<int>(::syscall(SYS_mkdirat, folder, path, mode));
}

}  // namespace raw

[[noreturn]] void give_up(const char* what) {
  std::fprintf(stderr, "forgetful disk: %s: %s\n", what, std::strerror(errno));
  std::abort();
}

uint64_t monotonic_us() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000 + static_cast<uint64_t>(now.tv_nsec) / 1000;
}

/// A name in a folder, as the caller wrote it.
struct Place {
  int folder;
  const char* path;

  bool is_watched = false;
  ino_t parent = 0;
  std::string name;

  bool look(struct stat& facts) const {
    return ::fstatat(folder, path, &facts, AT_SYMLINK_NOFOLLOW) == 0;
  }
};

class Notes {
 public:
  Notes() {
    const char* data = std::getenv("FORGETFUL_DATA");
    const char* notes = std::getenv("FORGETFUL_NOTES");
    if (data == nullptr || notes == nullptr) return;
    data_ = data;
    notes_ = notes;
    if (const char* boot_id = std::getenv("FORGETFUL_BOOT_ID")) boot_id_ = boot_id;
    if (const char* time = std::getenv("FORGETFUL_SYNC_US")) sync_us_ = std::atol(time);
    if (const char* syncs = std::getenv("FORGETFUL_SYNCS"))
      syncs_count_ = std::strcmp(syncs, "none") != 0;
    open_journal();
    on_ = true;
  }

  bool on() const { return on_; }
  std::mutex& mutex() { return mutex_; }

  /// The file to open in place of `path`.
  const char* instead_of(const char* path) const {
    return !boot_id_.empty() && std::strcmp(path, kBootId) == 0 ? boot_id_.c_str() : path;
  }

  Place place_of(int folder, const char* path) const {
    Place out{.folder = folder, .path = path, .name = {}};
    std::string text(path);
    while (text.size() > 1 && text.back() == '/') text.pop_back();
    const size_t slash = text.rfind('/');
    out.name = text.substr(slash == std::string::npos ? 0 : slash + 1);
    std::string parent = slash == std::string::npos ? "." : text.substr(0, slash + 1);
    if (folder != AT_FDCWD && parent.front() != '/')
      parent = "/proc/self/fd/" + std::to_string(folder) + "/" + parent;
    std::array<char, PATH_MAX> real{};
    struct stat facts {};
    if (::realpath(parent.c_str(), real.data()) == nullptr || ::stat(real.data(), &facts) != 0)
      return out;
    const std::string found = std::string(real.data()) + "/";
    out.is_watched = found.starts_with(data_ + "/");
    out.parent = facts.st_ino;
    return out;
  }

  // All that follows: under the mutex.

  uint64_t lines() const { return lines_; }

  void note(const std::string& words) {
    const std::string line = words + "\n";
    if (raw::write(journal_, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
      give_up("no note can be taken");
    ++lines_;
  }
  void note_name(const char* word, const Place& place, ino_t inode) {
    note(std::string(word) + " " + std::to_string(place.parent) + " " + std::to_string(inode) +
         " " + place.name);
  }

  /// So that the bytes of a file whose name goes stay until the next cut, and its inode is no
  /// other file's.
  void keep(const Place& place, const struct stat& facts) {
    if (!S_ISREG(facts.st_mode)) return;
    const std::string name = notes_ + "/kept/" + std::to_string(facts.st_ino);
    if (raw::link(place.folder, place.path, AT_FDCWD, name.c_str(), 0) != 0 && errno != EEXIST)
      give_up("a file cannot be kept");
  }

  /// Before the bytes from `offset` on, `size` of them, change.
  void keep_bytes(const char* word, int folder, const char* path, const struct stat& facts,
                  uint64_t offset, uint64_t size) {
    const std::string number = std::to_string(lines_);
    const std::string name = notes_ + "/undo/" + number;
    const int from = raw::open(folder, path, O_RDONLY | O_CLOEXEC);
    const int to = raw::open(AT_FDCWD, name.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (from < 0 || to < 0) give_up("old bytes cannot be kept");
    std::array<char, 1 << 16> bytes;
    for (uint64_t done = 0; done < size;) {
      const ssize_t part = ::pread(from, bytes.data(), std::min(bytes.size(), size - done),
                                   static_cast<off_t>(offset + done));
      if (part <= 0 || raw::write(to, bytes.data(), static_cast<size_t>(part)) != part)
        give_up("old bytes cannot be kept");
      done += static_cast<uint64_t>(part);
    }
    raw::close(from);
    raw::close(to);
    note(std::string(word) + " " + std::to_string(facts.st_ino) + " " + std::to_string(offset) +
         " " + std::to_string(facts.st_size) + " " + number);
  }

  // Without it.

  int sync(int file) {
    struct stat facts {};
    uint64_t covered = 0;
    {
      const std::lock_guard lock(mutex_);
      covered = lines_;
    }
    if (::fstat(file, &facts) != 0) return -1;
    const uint64_t begun_us = monotonic_us();
    const timespec wait{sync_us_ / 1'000'000, sync_us_ % 1'000'000 * 1000};
    ::nanosleep(&wait, nullptr);
    if (!syncs_count_) return 0;
    const std::lock_guard lock(mutex_);
    const std::string inode = std::to_string(facts.st_ino);
    if (S_ISDIR(facts.st_mode))
      note("names " + inode + " " + std::to_string(covered));
    else
      note("synced " + inode + " " + std::to_string(facts.st_size) + " " + std::to_string(covered) +
           " " + std::to_string(begun_us));
    return 0;
  }

  void unfollowed(const char* what) {
    const std::lock_guard lock(mutex_);
    note(std::string("unfollowed ") + what);
  }

  void watch(int file, bool watched) {
    if (file >= 0 && static_cast<size_t>(file) < kDescriptorsMax)
      watched_[static_cast<size_t>(file)].store(watched, std::memory_order_relaxed);
  }
  bool watches(int file) const {
    return file >= 0 && static_cast<size_t>(file) < kDescriptorsMax &&
           watched_[static_cast<size_t>(file)].load(std::memory_order_relaxed);
  }

 private:
  void open_journal() {
    const std::string name = notes_ + "/journal";
    journal_ = raw::open(AT_FDCWD, name.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (journal_ < 0) give_up(name.c_str());
    std::array<char, 1 << 16> bytes;
    for (ssize_t size; (size = ::read(journal_, bytes.data(), bytes.size())) > 0;)
      lines_ += static_cast<uint64_t>(std::count(bytes.data(), bytes.data() + size, '\n'));
  }

  bool on_ = false, syncs_count_ = true;
  std::string data_, notes_, boot_id_;
  long sync_us_ = 1000;
  int journal_ = -1;
  std::mutex mutex_;
  uint64_t lines_ = 0;
  std::array<std::atomic<bool>, kDescriptorsMax> watched_{};
};

/// Never destroyed: files are closed late.
Notes& notes() {
  static Notes* const the_notes = new Notes();
  return *the_notes;
}

std::string name_of(int file) { return "/proc/self/fd/" + std::to_string(file); }

/// `open` opens it and returns its descriptor, or what is below 0.
template <typename Open>
int open_for_writing(const Place& place, bool truncates, Open open) {
  Notes& all = notes();
  const std::lock_guard lock(all.mutex());
  struct stat facts {};
  const bool existed = place.look(facts);
  if (existed && truncates && S_ISREG(facts.st_mode) && facts.st_size > 0)
    all.keep_bytes("shortened", place.folder, place.path, facts, 0,
                   static_cast<uint64_t>(facts.st_size));
  const int file = open();
  if (file < 0) return file;
  all.watch(file, true);
  if (!existed && ::fstat(file, &facts) == 0) all.note_name("file", place, facts.st_ino);
  return file;
}

int open_file(int folder, const char* path, int flags, mode_t mode) {
  Notes& all = notes();
  if (!all.on()) return raw::open(folder, path, flags, mode);
  const bool writes = (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC)) != 0;
  if (!writes) {
    const int file = raw::open(folder, all.instead_of(path), flags, mode);
    all.watch(file, false);
    return file;
  }
  const Place place = all.place_of(folder, path);
  const auto open = [&] { return raw::open(folder, path, flags, mode); };
  if (place.is_watched) {
    if ((flags & O_TMPFILE) == O_TMPFILE) all.unfollowed("O_TMPFILE");
    return open_for_writing(place, (flags & O_TRUNC) != 0, open);
  }
  const int file = open();
  all.watch(file, false);
  return file;
}

FILE* open_stream(const char* path, const char* mode) {
  using Function = FILE* (*)(const char*, const char*);
  static const auto next = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, "fopen64"));
  Notes& all = notes();
  if (!all.on()) return next(path, mode);
  if (mode[0] == 'r' && std::strchr(mode, '+') == nullptr) return next(all.instead_of(path), mode);
  const Place place = all.place_of(AT_FDCWD, path);
  if (!place.is_watched) return next(path, mode);
  if (mode[0] == 'r') all.unfollowed("a stream that overwrites");
  FILE* stream = nullptr;
  open_for_writing(place, mode[0] == 'w', [&] {
    stream = next(path, mode);
    return stream == nullptr ? -1 : ::fileno(stream);
  });
  return stream;
}

/// `offset` below 0: where the file stands.
void before_write(int file, off_t offset, size_t size) {
  Notes& all = notes();
  struct stat facts {};
  if (!all.on() || !all.watches(file) || ::fstat(file, &facts) != 0 || !S_ISREG(facts.st_mode))
    return;
  if (offset < 0) {
    if ((::fcntl(file, F_GETFL) & O_APPEND) != 0) return;
    offset = ::lseek(file, 0, SEEK_CUR);
  }
  if (offset >= facts.st_size || size == 0) return;
  const std::lock_guard lock(all.mutex());
  all.keep_bytes("overwritten", AT_FDCWD, name_of(file).c_str(), facts,
                 static_cast<uint64_t>(offset),
                 std::min(size, static_cast<size_t>(facts.st_size - offset)));
}

size_t bytes_of(const iovec* parts, int count) {
  size_t size = 0;
  for (int i = 0; i < count; ++i) size += parts[i].iov_len;
  return size;
}

int shorten(int file, off_t size) {
  Notes& all = notes();
  struct stat facts {};
  if (all.on() && all.watches(file) && ::fstat(file, &facts) == 0 && size < facts.st_size) {
    const std::lock_guard lock(all.mutex());
    all.keep_bytes("shortened", AT_FDCWD, name_of(file).c_str(), facts, static_cast<uint64_t>(size),
                   static_cast<uint64_t>(facts.st_size - size));
  }
  return static_cast<int>(::syscall(SYS_ftruncate, file, size));
}

int move_file(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) {
  Notes& all = notes();
  if (!all.on()) return raw::rename(from_folder, from, to_folder, to, flags);
  const Place before = all.place_of(from_folder, from), after = all.place_of(to_folder, to);
  if (before.is_watched != after.is_watched || (flags & ~unsigned{RENAME_NOREPLACE}) != 0)
    all.unfollowed("a rename out of the folder, or an exchange");
  if (!before.is_watched) return raw::rename(from_folder, from, to_folder, to, flags);
  const std::lock_guard lock(all.mutex());
  struct stat moved {
  }, replaced{};
  const bool exists = before.look(moved), replaces = after.look(replaced);
  if (exists && replaces) all.keep(after, replaced);
  const int result = raw::rename(from_folder, from, to_folder, to, flags);
  if (result == 0 && !(replaces && replaced.st_ino == moved.st_ino))
    all.note("moved " + std::to_string(before.parent) + " " + std::to_string(after.parent) + " " +
             std::to_string(moved.st_ino) + " " + before.name + "/" + after.name);
  return result;
}

int remove_name(int folder, const char* path, int flags) {
  Notes& all = notes();
  if (!all.on()) return raw::unlink(folder, path, flags);
  const Place place = all.place_of(folder, path);
  if (!place.is_watched) return raw::unlink(folder, path, flags);
  const std::lock_guard lock(all.mutex());
  struct stat facts {};
  if (place.look(facts)) all.keep(place, facts);
  const int result = raw::unlink(folder, path, flags);
  if (result == 0) all.note_name("gone", place, facts.st_ino);
  return result;
}

int make_folder(int folder, const char* path, mode_t mode) {
  Notes& all = notes();
  if (!all.on()) return raw::make_folder(folder, path, mode);
  const Place place = all.place_of(folder, path);
  const std::lock_guard lock(all.mutex());
  const int result = raw::make_folder(folder, path, mode);
  struct stat facts {};
  if (result == 0 && place.is_watched && place.look(facts))
    all.note_name("folder", place, facts.st_ino);
  return result;
}

int add_name(int from_folder, const char* from, int to_folder, const char* to, int flags) {
  Notes& all = notes();
  if (!all.on()) return raw::link(from_folder, from, to_folder, to, flags);
  const Place before = all.place_of(from_folder, from), after = all.place_of(to_folder, to);
  if (before.is_watched != after.is_watched) all.unfollowed("a link out of the folder");
  const std::lock_guard lock(all.mutex());
  const int result = raw::link(from_folder, from, to_folder, to, flags);
  struct stat facts {};
  if (result == 0 && after.is_watched && after.look(facts))
    all.note_name("name", after, facts.st_ino);
  return result;
}

void* map_file(void* at, size_t size, int protection, int flags, int file, off_t offset) {
  if (file >= 0 && (flags & MAP_TYPE) != MAP_PRIVATE && (protection & PROT_WRITE) != 0 &&
      notes().on() && notes().watches(file))
    notes().unfollowed("a mapping that is written to");
  return reinterpret_cast<void*>(::syscall(SYS_mmap, at, size, protection, flags, file, offset));
}

int sync_file(int file, long call) {
  return notes().on() ? notes().sync(file) : static_cast<int>(::syscall(call, file));
}

mode_t mode_of(int flags, va_list rest) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? static_cast<mode_t>(va_arg(rest, unsigned)) : 0;
}

}  // namespace

// What the C library offers, in front of it.
extern "C" {

int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = mode_of(flags, rest);
  va_end(rest);
  return open_file(AT_FDCWD, path, flags, mode);
}

int openat(int folder, const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = mode_of(flags, rest);
  va_end(rest);
  return open_file(folder, path, flags, mode);
}

int creat(const char* path, mode_t mode) {
  return open_file(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, mode);
}

FILE* fopen(const char* path, const char* mode) { return open_stream(path, mode); }

int close(int file) {
  notes().watch(file, false);
  return raw::close(file);
}

ssize_t write(int file, const void* bytes, size_t size) {
  before_write(file, -1, size);
  return raw::write(file, bytes, size);
}

ssize_t pwrite(int file, const void* bytes, size_t size, off_t offset) {
  before_write(file, offset, size);
  return ::syscall(SYS_pwrite64, file, bytes, size, offset);
}

ssize_t writev(int file, const iovec* parts, int count) {
  before_write(file, -1, bytes_of(parts, count));
  return ::syscall(SYS_writev, file, parts, count);
}

ssize_t pwritev(int file, const iovec* parts, int count, off_t offset) {
  before_write(file, offset, bytes_of(parts, count));
  return ::syscall(SYS_pwritev, file, parts, count, offset, 0);
}

int ftruncate(int file, off_t size) noexcept { return shorten(file, size); }

int truncate(const char* path, off_t size) noexcept {
  const int file = open_file(AT_FDCWD, path, O_WRONLY | O_CLOEXEC, 0);
  if (file < 0) return -1;
  const int result = shorten(file, size);
  close(file);
  return result;
}

int fallocate(int file, int mode, off_t offset, off_t size) {
  if ((mode & ~FALLOC_FL_KEEP_SIZE) != 0 && notes().on() && notes().watches(file))
    notes().unfollowed("fallocate that changes bytes");
  return static_cast<int>(::syscall(SYS_fallocate, file, mode, offset, size));
}

ssize_t copy_file_range(int from, off_t* from_offset, int to, off_t* to_offset, size_t size,
                        unsigned flags) {
  if (notes().on() && notes().watches(to)) notes().unfollowed("copy_file_range");
  return ::syscall(SYS_copy_file_range, from, from_offset, to, to_offset, size, flags);
}

int fsync(int file) { return sync_file(file, SYS_fsync); }
int fdatasync(int file) { return sync_file(file, SYS_fdatasync); }

int syncfs(int file) noexcept {
  if (notes().on()) notes().unfollowed("syncfs");
  return static_cast<int>(::syscall(SYS_syncfs, file));
}
void sync() noexcept {
  if (notes().on()) notes().unfollowed("sync");
  ::syscall(SYS_sync);
}

int rename(const char* from, const char* to) noexcept {
  return move_file(AT_FDCWD, from, AT_FDCWD, to, 0);
}
int renameat(int from_folder, const char* from, int to_folder, const char* to) noexcept {
  return move_file(from_folder, from, to_folder, to, 0);
}
int renameat2(int from_folder, const char* from, int to_folder, const char* to,
              unsigned flags) noexcept {
  return move_file(from_folder, from, to_folder, to, flags);
}

int unlink(const char* path) noexcept { return remove_name(AT_FDCWD, path, 0); }
int unlinkat(int folder, const char* path, int flags) noexcept {
  return remove_name(folder, path, flags);
}
int rmdir(const char* path) noexcept { return remove_name(AT_FDCWD, path, AT_REMOVEDIR); }
int remove(const char* path) noexcept {
  const int result = remove_name(AT_FDCWD, path, 0);
  return result != 0 && errno == EISDIR ? remove_name(AT_FDCWD, path, AT_REMOVEDIR) : result;
}

int mkdir(const char* path, mode_t mode) noexcept { return make_folder(AT_FDCWD, path, mode); }
int mkdirat(int folder, const char* path, mode_t mode) noexcept {
  return make_folder(folder, path, mode);
}

int link(const char* from, const char* to) noexcept {
  return add_name(AT_FDCWD, from, AT_FDCWD, to, 0);
}
int linkat(int from_folder, const char* from, int to_folder, const char* to, int flags) noexcept {
  return add_name(from_folder, from, to_folder, to, flags);
}

void* mmap(void* at, size_t size, int protection, int flags, int file, off_t offset) noexcept {
  return map_file(at, size, protection, flags, file, offset);
}

// The same by the names that programs of 32 bits need.
int open64(const char*, int, ...) __attribute__((alias("open")));
int openat64(int, const char*, int, ...) __attribute__((alias("openat")));
int creat64(const char*, mode_t) __attribute__((alias("creat")));
FILE* fopen64(const char*, const char*) __attribute__((alias("fopen")));
ssize_t pwrite64(int, const void*, size_t, off64_t) __attribute__((alias("pwrite")));
ssize_t pwritev64(int, const iovec*, int, off64_t) __attribute__((alias("pwritev")));
int ftruncate64(int, off64_t) noexcept __attribute__((alias("ftruncate")));
int truncate64(const char*, off64_t) noexcept __attribute__((alias("truncate")));
int fallocate64(int, int, off64_t, off64_t) __attribute__((alias("fallocate")));
void* mmap64(void*, size_t, int, int, int, off64_t) noexcept __attribute__((alias("mmap")));
}
