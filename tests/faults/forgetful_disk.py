# SPDX-License-Identifier: Apache-2.0
"""What a disk has after a cut of the power, from what forgetful_disk.cc has noted.

A file keeps the bytes that were synced and, as chance has it, some of what came after them. Changes of names that no
sync of their folder covers are lost from some moment on, in each folder another; a move is lost in both its folders or
in none. Whatever is not reachable from the top is gone."""
import os
import random
import shutil
import time
import uuid
from pathlib import Path

WORDS = {"file": 3, "folder": 3, "name": 3, "gone": 3, "moved": 4, "overwritten": 4, "shortened": 4, "synced": 4,
         "names": 2, "unfollowed": 1}


PAGE, WORD = 4096, 8


class File:
    def __init__(self, inode, size):
        self.inode, self.synced, self.synced_at = inode, size, -1
        self.changes = []  # (line, word, offset, size before, undo) of bytes that were there


class Folder:
    def __init__(self, inode):
        self.inode, self.lasting_at = inode, -1


class Change:
    """Of names: (folder, name, None or what is there then), one or, for a move, two."""

    def __init__(self, line, parts):
        self.line, self.parts = line, parts

    def folders(self):
        return [folder for folder, _, _ in self.parts]


class Report:
    """What one cut took."""

    def __init__(self):
        self.bytes_lost = self.names_lost = self.changes_undone = 0
        self.log_synced_us = None  # when the last sync of a log of RocksDB began, on the monotonic clock

    def __str__(self):
        return "%d bytes, %d names, %d overwritten places" % (self.bytes_lost, self.names_lost, self.changes_undone)


class ForgetfulDisk:
    def __init__(self, data, notes, library):
        self.data, self.notes, self.library = Path(data).resolve(), Path(notes).resolve(), library
        self.data.mkdir(parents=True, exist_ok=True)
        self.begin()

    def begin(self):
        """From now on everything that is there is on the disk; a cut is a start of the machine, too."""
        shutil.rmtree(self.notes, ignore_errors=True)
        for folder in ("kept", "undo"):
            (self.notes / folder).mkdir(parents=True)
        (self.notes / "boot_id").write_text(str(uuid.uuid4()) + "\n")
        self.top = Folder(os.stat(self.data).st_ino)
        self.things = {self.top.inode: self.top}  # by inode
        self.names_at_first = []
        for folder, folders, files in os.walk(self.data):
            parent = self.things[os.stat(folder).st_ino]
            for name in folders + files:
                facts = os.lstat(os.path.join(folder, name))
                if facts.st_ino not in self.things:
                    is_folder = name in folders
                    self.things[facts.st_ino] = Folder(facts.st_ino) if is_folder else File(facts.st_ino, facts.st_size)
                self.names_at_first.append((parent, name, self.things[facts.st_ino]))

    def environment(self, syncs="all", sync_us=1000):
        """For the process whose disk it is."""
        return dict(os.environ, LD_PRELOAD=str(self.library), FORGETFUL_DATA=str(self.data),
                    FORGETFUL_NOTES=str(self.notes), FORGETFUL_BOOT_ID=str(self.notes / "boot_id"),
                    FORGETFUL_SYNCS=syncs, FORGETFUL_SYNC_US=str(sync_us))

    def cut(self, seed, worst=False, holes=()):
        """The process has been killed. The folder becomes what the disk has; at worst no more than was synced. In
        folders with names as in `holes` a page that was not synced may be missing in front of others that came to
        the disk."""
        rng, report = Least() if worst else random.Random(seed), Report()
        changes = self.read_journal(report)
        changes += self.unnoted(changes)
        lasting = self.that_last(changes, rng)
        report.names_lost = len(changes) - len(lasting)
        tree = tree_of(self.names_at_first, lasting)
        self.rebuild(tree, rng, report, holes)
        self.begin()
        return report

    def read_journal(self, report):
        """What is known of the files; returns the changes of names in their order."""
        changes, named, logs = [], {}, set()
        journal = self.notes / "journal"
        for line, text in enumerate(journal.read_text().splitlines() if journal.exists() else []):
            word = text.split(" ", 1)[0]
            values = text.split(" ", WORDS[word])[1:]
            if word == "unfollowed":
                raise RuntimeError("the layer cannot follow " + values[0])
            numbers = [int(value) for value in values if value.isdigit() and word != "moved"]
            if word in ("file", "folder"):
                thing = File(numbers[1], 0) if word == "file" else Folder(numbers[1])
                self.things[thing.inode] = thing
                changes.append(Change(line, [(self.folder(values[0]), values[2], thing)]))
                if values[2].endswith(".log"):
                    logs.add(thing.inode)
            elif word == "name":
                changes.append(Change(line, [(self.folder(values[0]), values[2], self.things[int(values[1])])]))
            elif word == "gone":
                changes.append(Change(line, [(self.folder(values[0]), values[2], None)]))
            elif word == "moved":
                old, new = values[3].split("/")
                thing = self.things[int(values[2])]
                changes.append(Change(line, [(self.folder(values[0]), old, None), (self.folder(values[1]), new, thing)]))
            elif word == "names":
                if numbers[0] in self.things:
                    folder = self.things[numbers[0]]
                    folder.lasting_at = max(folder.lasting_at, numbers[1])
            elif numbers[0] in self.things:
                self.note_bytes(self.things[numbers[0]], line, word, numbers, logs, report)
        return changes

    def folder(self, inode):
        return self.things[int(inode)]

    @staticmethod
    def note_bytes(file, line, word, numbers, logs, report):
        if word != "synced":
            file.changes.append((line, word, numbers[1], numbers[2], numbers[3]))
        elif numbers[2] > file.synced_at:
            file.synced, file.synced_at = numbers[1], numbers[2]
            file.changes = [change for change in file.changes if change[0] >= file.synced_at]
            if file.inode in logs:
                report.log_synced_us = max(report.log_synced_us or 0, numbers[3])

    def unnoted(self, changes):
        """The process may have been killed between a change and its note."""
        expected = tree_of(self.names_at_first, changes)
        found, parts = {}, []
        for path, _, _ in os.walk(self.data):
            folder = self.things.get(os.stat(path).st_ino)
            if folder is None:
                continue  # made without a note, as all in it
            for entry in os.scandir(path):
                if entry.inode() not in self.things:
                    self.things[entry.inode()] = Folder(entry.inode()) if entry.is_dir() else File(entry.inode(), 0)
                found[(folder, entry.name)] = self.things[entry.inode()]
        for place, thing in found.items():
            if expected.get(place) is not thing:
                parts.append(place + (thing,))
        for place, thing in expected.items():
            if place not in found and place[0] in {folder for folder, _ in found} | {self.top}:
                parts.append(place + (None,))
        if len(parts) > 2:
            raise RuntimeError("names changed that nobody noted: %s" % [(name, thing) for _, name, thing in parts][:5])
        return [Change(10**12, parts)] if parts else []

    @staticmethod
    def that_last(changes, rng):
        """In each folder the first so many, at least those that a sync covers."""
        of_folder = {}
        for change in changes:
            for folder in set(change.folders()):
                of_folder.setdefault(folder, []).append(change)
        kept = {}
        for folder, its in of_folder.items():
            synced = max((number + 1 for number, change in enumerate(its) if change.line < folder.lasting_at), default=0)
            kept[folder] = some_of(synced, len(its), rng)
        again = True
        while again:
            again = False
            for folder, its in of_folder.items():
                for change in its[:kept[folder]]:
                    for other in change.folders():
                        least = of_folder[other].index(change) + 1
                        if kept[other] < least:
                            kept[other], again = least, True
        return [change for change in changes
                if any(change in of_folder[folder][:kept[folder]] for folder in change.folders())]

    def rebuild(self, tree, rng, report, holes):
        paths = {}
        for path, folders, files in os.walk(self.data):
            for name in folders + files:
                where = os.path.join(path, name)
                paths[os.lstat(where).st_ino] = where
        new = self.data.with_name(self.data.name + ".cut")
        shutil.rmtree(new, ignore_errors=True)
        files = {}

        def make(folder, path):
            path.mkdir()
            if folder.inode in paths or folder is self.top:
                shutil.copymode(paths.get(folder.inode, self.data), path)
            for name, thing in tree_entries(tree, folder):
                if isinstance(thing, Folder):
                    make(thing, path / name)
                else:
                    os.link(paths.get(thing.inode, self.notes / "kept" / str(thing.inode)), path / name)
                    files[thing.inode] = (thing, path / name)

        make(self.top, new)
        for thing, path in files.values():
            self.forget_bytes(thing, path, rng, report, holes)
        shutil.rmtree(self.data)
        new.rename(self.data)

    def forget_bytes(self, file, path, rng, report, holes):
        left, least = some_of(0, len(file.changes), rng), file.synced
        for _, word, offset, _, _ in file.changes[:left]:
            if word == "shortened":
                least = min(least, offset)
        with open(path, "r+b") as opened:
            for _, _, offset, size, undo in reversed(file.changes[left:]):
                opened.seek(offset)
                opened.write((self.notes / "undo" / str(undo)).read_bytes())
                opened.truncate(size)
                report.changes_undone += 1
            size = opened.seek(0, os.SEEK_END)
            if size < least:
                raise RuntimeError("%s has %d bytes, but %d were synced" % (path, size, least))
            kept = some_of(least, size, rng)
            opened.truncate(kept)
            report.bytes_lost += size - kept
            if any(path.parent.match(name) for name in holes) and kept - least > PAGE and rng.random() < 0.5:
                # A disk writes 512 bytes as a whole; a hole may begin between them all the same.
                opened.seek(-(-rng.randint(least, kept - PAGE) // WORD) * WORD)
                opened.write(bytes(PAGE - WORD))
                report.bytes_lost += PAGE - WORD


class Least:
    """In place of chance."""

    @staticmethod
    def choice(values):
        return values[0]

    @staticmethod
    def randint(least, most):
        return least


def some_of(least, most, rng):
    """Often one end, else something between."""
    return rng.choice((least, most, rng.randint(least, most)))


def tree_of(names, changes):
    """(folder, name): what is there."""
    tree = {(folder, name): thing for folder, name, thing in names}
    for change in changes:
        for folder, name, thing in change.parts:
            if thing is None:
                tree.pop((folder, name), None)
            else:
                tree[(folder, name)] = thing
    return tree


def tree_entries(tree, folder):
    return sorted(((name, thing) for (parent, name), thing in tree.items() if parent is folder), key=lambda e: e[0])


def now_us():
    """The clock of the notes."""
    return time.monotonic_ns() // 1000
