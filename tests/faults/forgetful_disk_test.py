# SPDX-License-Identifier: Apache-2.0
# What forgetful_disk.cc and forgetful_disk.py take for a disk, on files that a small process has written: what was
# synced stays at every cut, what was not goes at some.
import subprocess
import sys
import tempfile
from pathlib import Path

from checks import BINARIES, check, finish
from forgetful_disk import ForgetfulDisk

SEEDS = range(24)
LIBRARY = Path(BINARIES).parent / "tests/libforgetful_disk.so"

BEGIN = """
import os, signal, sys
top = sys.argv[1]
def write(name, data, synced=True, flags=os.O_WRONLY | os.O_CREAT | os.O_APPEND):
    file = os.open(top + "/" + name, flags, 0o644)
    os.write(file, data)
    if synced:
        os.fsync(file)
    os.close(file)
def sync(name="."):
    folder = os.open(top + "/" + name, os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(folder)
    os.close(folder)
def end():
    os.kill(os.getpid(), signal.SIGKILL)
"""

# Everything here is on the disk.
LASTING = BEGIN + """
for name in ("appended", "overwritten", "shortened", "emptied", "removed", "replaced", "moved"):
    write(name, b"old " * 1000)
for name in ("from", "to"):
    os.mkdir(top + "/" + name)
    write(name + "/stays", b"old")
    sync(name)
write("from/crosses", b"old")
sync("from")
with open(top + "/stream", "w") as stream:
    stream.write("old")
    stream.flush()
    os.fsync(stream.fileno())
sync()
end()
"""

# Nothing of this is, but what is synced and says so.
PASSING = BEGIN + """
write("synced", b"all")
sync()
write("appended", b"new " * 1000, synced=False)
write("overwritten", b"new", synced=False, flags=os.O_WRONLY)
os.truncate(top + "/shortened", 100)
write("emptied", b"", synced=False, flags=os.O_WRONLY | os.O_TRUNC)
write("unsynced", b"new " * 1000, synced=False)
write("unnamed", b"all")
write("replacing", b"new", synced=True)
os.rename(top + "/replacing", top + "/replaced")
os.rename(top + "/moved", top + "/moved.new")
os.rename(top + "/from/crosses", top + "/to/crosses")
os.unlink(top + "/removed")
os.mkdir(top + "/folder")
write("folder/inside", b"all")
sync("folder")
end()
"""


def run(disk, program, syncs="all"):
    return subprocess.run([sys.executable, "-c", program, str(disk.data)], env=disk.environment(syncs, sync_us=0),
                          capture_output=True, text=True)


def outcomes(folder, first, second, syncs="all"):
    """For each seed what the folder has after a cut: names to bytes."""
    found = []
    for seed in SEEDS:
        disk = ForgetfulDisk(folder / ("%s-%d" % (syncs, seed)), folder / "notes", LIBRARY)
        for program in (first, second):
            done = run(disk, program, syncs)
            if done.returncode != -9:
                raise RuntimeError(done.stderr)
        disk.cut(seed)
        found.append({str(path.relative_to(disk.data)): path.read_bytes()
                      for path in disk.data.rglob("*") if path.is_file()})
    return found


def check_each(name, found, right, *, seen=()):
    """`right` holds at each cut, and each of `seen` at some."""
    wrong = [files for files in found if not right(files)]
    unseen = [number for number, condition in enumerate(seen) if not any(map(condition, found))]
    check(name, not wrong and not unseen, "wrong: %s, not seen: %s" % (str(wrong[:1])[:300], unseen))


def check_bytes(found):
    old, new = b"old " * 1000, b"new " * 1000
    check_each("what was synced, and its name, stays", found, lambda f: f.get("synced") == b"all")
    check_each("a file that was not synced loses its end, or all", found,
               lambda f: new.startswith(f.get("unsynced", b"")),
               seen=[lambda f: "unsynced" not in f, lambda f: f.get("unsynced") == new,
                     lambda f: 0 < len(f.get("unsynced", b"")) < len(new)])
    check_each("what was appended and not synced goes, and no more", found,
               lambda f: (old + new).startswith(f["appended"]) and len(f["appended"]) >= len(old),
               seen=[lambda f: f["appended"] == old, lambda f: len(f["appended"]) > len(old)])
    check_each("overwritten bytes come back", found, lambda f: f["overwritten"][3:] == old[3:],
               seen=[lambda f: f["overwritten"] == old, lambda f: f["overwritten"][:3] == b"new"])
    check_each("a shorter file is the longer one again", found, lambda f: f["shortened"] in (old, old[:100]),
               seen=[lambda f: f["shortened"] == old, lambda f: len(f["shortened"]) == 100])
    check_each("an emptied file is full again", found, lambda f: f["emptied"] in (old, b""),
               seen=[lambda f: f["emptied"] == old, lambda f: f["emptied"] == b""])
    check_each("what a stream has written and synced stays", found, lambda f: f.get("stream") == b"old")


def check_names(found):
    old = b"old " * 1000
    check_each("a synced file is gone without a sync of its folder", found, lambda f: f.get("unnamed") in (None, b"all"),
               seen=[lambda f: "unnamed" not in f, lambda f: "unnamed" in f])
    check_each("a file that replaces another: the one or the other", found, lambda f: f["replaced"] in (old, b"new"),
               seen=[lambda f: f["replaced"] == old, lambda f: f["replaced"] == b"new"])
    check_each("a move is undone or not, never half", found,
               lambda f: ("moved" in f) != ("moved.new" in f) and ("from/crosses" in f) != ("to/crosses" in f),
               seen=[lambda f: "moved" in f, lambda f: "moved.new" in f,
                     lambda f: "from/crosses" in f, lambda f: "to/crosses" in f])
    check_each("a removed file is back", found, lambda f: f.get("removed") in (None, old),
               seen=[lambda f: "removed" in f, lambda f: "removed" not in f])
    check_each("changes of names are lost from some moment on", found,
               lambda f: "removed" in f or ("moved.new" in f and f["replaced"] == b"new" and "unnamed" in f))
    check_each("a folder is gone without a sync of the one it is in", found,
               lambda f: f.get("folder/inside") in (None, b"all"),
               seen=[lambda f: "folder/inside" in f, lambda f: "folder/inside" not in f])


def check_start(folder):
    disk = ForgetfulDisk(folder / "start", folder / "notes", LIBRARY)
    read = "print(open('/proc/sys/kernel/random/boot_id').read())"
    first, second = run(disk, read).stdout, run(disk, read).stdout
    check("the boot id is another than the machine's, and stays", first == second != open("/proc/sys/kernel/random/boot_id").read() and first.strip(), first + second)
    run(disk, BEGIN + "write('a', b'all', synced=False); end()")
    check("a kill loses nothing", (disk.data / "a").read_bytes() == b"all")
    disk.cut(1)
    third = run(disk, read).stdout
    check("after a cut there is another boot id", third.strip() and third != first, third)
    run(disk, "import mmap, os\n" + BEGIN + "file = os.open(top + '/m', os.O_RDWR | os.O_CREAT)\n"
        "os.write(file, b'x' * 4096)\nmmap.mmap(file, 4096)")
    try:
        disk.cut(1)
        check("what the layer cannot follow is said", False)
    except RuntimeError as error:
        check("what the layer cannot follow is said", "mapping" in str(error), str(error))


def main():
    with tempfile.TemporaryDirectory(prefix="tetrad-forgetful-") as name:
        folder = Path(name)
        found = outcomes(folder, LASTING, PASSING)
        check_bytes(found)
        check_names(found)
        check_start(folder)
        without = outcomes(folder, LASTING, PASSING, syncs="none")
        check("where syncs do nothing, what was synced is lost",
              any(files.get("synced") != b"all" for files in without)
              and any(files.get("appended", b"") != (b"old " + b"new ") * 1000 for files in without))


main()
finish()
