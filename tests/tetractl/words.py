# SPDX-License-Identifier: Apache-2.0
"""The words around a verb, those of nodetool, completion; and answers that are none of a node of Tetrad."""
import json
import re
import socket
import stat
import subprocess
import threading
import time

from calls import FIRST, NODES, PREFIX, SETTINGS, TIMEOUTS, TOP, as_json, case, check, json_verbs, said_verbs, tetractl


def lines_of_words():
    """What stands before and after the verb, and wrong words."""
    case("status -p 9180 -h " + FIRST, "^UN")
    for line in "tablestats -F json ks", "tablestats --format=yaml", "-F json tpstats":
        check("tetractl %s is --json" % line, isinstance(json.loads(tetractl(*line.split()).stdout), dict))
    case("tablestats -F xml", "--format is json or yaml, not 'xml'", 2)
    case("-u cassandra -pw cassandra status", "^UN(.|\n)*-pw changes nothing: ")
    case("-p 7199 status", r"\Acluster: (.|\n)*^tetractl: nothing listens at %s:7199, the port of nodetool: 9180 is asked\n\Z" % re.escape(FIRST))
    case("-p 7199 flush", r"\Atetractl: nothing listens at \S+:7199, the port of nodetool: 9180 is asked\n\Z")
    check("and programs read no such line", "nodes" in json.loads(tetractl("-p", "7199", "status", "--json").stdout))
    case("-p 7198 status", "7198 does not answer: Connection refused", 1)
    nobody = "%s.%d" % (PREFIX, NODES + 1)
    case("-p 7199 status", "nothing listens at %s:7199(.|\n)*%s:9180 does not answer" % ((re.escape(nobody),) * 2), 1, host=nobody)
    with socket.create_server((FIRST, 7199)) as jmx:  # as Cassandra: what listens there is asked, and nobody else
        def answer():
            for _ in range(2):  # whether it listens, and the request
                jmx.accept()[0].sendall(b"JRMI\0\2\x4b\0\0")
        threading.Thread(target=answer, daemon=True).start()
        case("-p 7199 status", "7199 is where Cassandra listens for nodetool, a node of Tetrad listens on 9180", 1)
    case("-p x status", "'x' is no port", 2)
    case("stats", "did you mean status", 2)
    case("table", "did you mean tablestats", 2)
    case("status --jsn", "did you mean --json", 2)
    case("status a b", "'b' is too much: tetractl status", 2)
    case("split", "id is missing", 2)
    case("merge", "id is missing", 2)
    case("", "a command is missing", 2)
    case("status -h", r"^tetractl status \[keyspace\]")
    case("-h", "-h needs a value: HOST", 2)
    case("status --timeout", "--timeout needs a value: SECONDS", 2)
    case("help flush", r"^tetractl flush \[keyspace\] \[tables...\]")
    case("flush --help", r"^tetractl flush")
    case("--version", r"^tetractl \d")
    for word in "cleanup", "upgradesstables", "garbagecollect", "rebuild", "refreshsizeestimates":
        case(word + " ks t", r"^tetractl: %s: \S+ " % word)
    for word in "move 7", "disablehandoff", "assassinate 127.0.0.1", "import ks t /tmp", "sstableloader /tmp", "restore", "abortbootstrap":
        case(word, "tetractl: ", 1)


def words_of_nodetool():
    """A script for nodetool gets what it asks for, or a line that says why not."""
    listed = (TOP / "tests/tetractl/nodetool_words.txt").read_text().splitlines()
    words = [line for line in listed if not line.startswith("#")]
    check("nodetool's words were recorded", len(words) == 149 and "status" in words)
    for word in words:
        done = tetractl("help", word)
        known = done.returncode == 0 and done.stdout.startswith("tetractl ")
        said = re.fullmatch(r"tetractl: %s: \S.*\n" % word, done.stdout + done.stderr) and done.returncode in (0, 1)
        if said:  # also where a program reads the answer
            asked = tetractl(word, "ks", "--json"), tetractl("-F", "json", word)
            is_json = all(one.returncode == done.returncode and (not one.stderr and json.loads(one.stdout)["ok"] if done.returncode == 0
                                                                 else not one.stdout and one.stderr) for one in asked)
            check("tetractl %s --json" % word, is_json, str(asked))
        check("nodetool's %s is known" % word, known or said, "code %d:\n%s%s" % (done.returncode, done.stdout, done.stderr))
    for word in "setauthcacheconfig", "invalidaterowcache", "sstablerepairedset", "setautorepairconfig", "setcolumnindexsize", (
            "checktokenmetadata"):
        case(word + " ks t", r"^tetractl: %s: \S+ " % word)
    for word in "getauthcacheconfig", "getguardrailsconfig", "setguardrailsconfig", "setdefaultrf 3", "setcachecapacity 1 2 3", (
            "autorepairstatus"), "getautorepairconfig", "resetfullquerylog", "getsnapshotthrottle":
        case(word, r"\Atetractl: %s: \S+ .*\n\Z" % word.split()[0], 1)


def without_a_node():
    printed = case("completion", "complete -F _tetractl tetractl")
    check("tools/tetractl/completion.bash is what completion prints", printed == (TOP / "tools/tetractl/completion.bash").read_text())
    script = "%s\nCOMP_WORDS=(tetractl %s)\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_tetractl\necho ${COMPREPLY[*]}"
    for begun, whole in (
            ("-h x describ", "describe-cluster describecluster describering"), ("-h x --js", "--json"), ("log-level ''", "debug info warn error"),
            ("log-level w", "warn"), ("setting max_l", "max_logical_partition_mb"), ("setting ''", " ".join(SETTINGS)), ("setting x ''", ""),
            ("flush ''", ""), ("gettimeout ''", " ".join(TIMEOUTS)), ("settimeout re", "read"), ("--ca-file /etc/host", "/etc/host.conf /etc/hostname /etc/hosts"),
            ("certificates /et", "/etc"), ("-F ''", "json yaml")):
        done = subprocess.run(["bash", "-c", script % (printed, begun)], capture_output=True, text=True)
        found = set(done.stdout.split())
        check("bash completes %s" % begun, found and found <= set(whole.split()) if "/etc/" in whole else done.stdout.strip() == whole,
              done.stdout + done.stderr)
    as_json("completion", "bash")
    folder = TOP / "build/tetractl-certificates"
    subprocess.run(["rm", "-rf", str(folder)], check=True)
    case("certificates %s/for/one/ 127.0.0.1" % folder, "made .*/for/one/*ca.pem")
    check("the folder of keys is its owner's alone", stat.S_IMODE((folder / "for/one").stat().st_mode) == 0o700)
    case("certificates %s/for/one/ca.pem/two 127.0.0.1" % folder, "cannot make the folder .*/ca.pem: Not a directory", 1)
    case("certificates %s 127.0.0.1" % folder, "made .*/ca.pem")
    as_json("certificates %s 127.0.0.1" % folder, "kept")
    subprocess.run(["rm", "-rf", str(folder)], check=True)
    verbs = re.search(r'verbs="help (.*)"', printed)[1].split()
    check("every verb is called here", not set(verbs) - said_verbs, sorted(set(verbs) - said_verbs))
    # What these say of a cluster as this one is an error, which is a sentence.
    no_json = {"recover", "recover-metadata", "remove-lost-nodes", "split", "merge", "remove-node", "removenode", "reload-certificates", "reloadssl"}
    check("every verb is called with --json", not set(verbs) - json_verbs - no_json, sorted(set(verbs) - json_verbs - no_json))


class Answers:
    """A server of one's own in the place of a node's admin port: what it answers to a path, after so many seconds; None: nothing."""
    def __init__(self, host, answers):
        self.host, self.answers, self.listens = host, answers, socket.create_server((host, 9180))
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            try:
                taken = self.listens.accept()[0]
            except OSError:
                return
            threading.Thread(target=self.answer, args=(taken,), daemon=True).start()

    def answer(self, taken):
        path = taken.recv(4096).split(b" ")[1].decode()
        status, body, seconds = self.answers(path)
        time.sleep(seconds)
        with taken:
            if body is not None:
                taken.sendall(("HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body)).encode())

    def close(self):
        self.listens.shutdown(socket.SHUT_RDWR)
        self.listens.close()


def answers_of_others():
    """Nodes that hang, orders that take long, web servers."""
    other = "%s.%d" % (PREFIX, NODES + 2)
    began = time.monotonic()
    hangs = Answers(other, lambda path: ("200 OK", None, 60))
    case("--timeout 1 status", r"\Atetractl: %s:9180 does not answer within 1 s \(--timeout\)\n\Z" % re.escape(other), 1, host=other)
    case("compact --timeout 1", r"\Atetractl: \S+ does not answer within 1 s \(--timeout\), to /health neither; what was ordered may be under way", 1, host=other)
    check("nobody waits for long", time.monotonic() - began < 20)
    hangs.close()
    slow = Answers(other, lambda path: ("200 OK", "serving\n", 0) if path == "/health" else ("200 OK", '{"ok": true}', 5))
    case("--timeout 2 compact", r"\A\Z", host=other)
    case("--timeout 1 info", "does not answer within 1 s", 1, host=other)
    slow.close()
    web = Answers(other, lambda path: ("404 Not Found", "<html>404</html>", 0))
    for line in "status", "flush", "info":
        case(line, r"\Atetractl: no Tetrad answers at %s:9180: the answer is no JSON \(HTTP status 404\); a node's admin port is 9180" % re.escape(other), 1, host=other)
    web.close()
    for status, body in ("200 OK", "{}"), ("200 OK", "[1]"), ("401 Unauthorized", "{}"), ("401 Unauthorized", "no"), ("500 Oops", '{"error": 7}'):
        odd = Answers(other, lambda path: (status, body, 0))
        for line in "status", "ring", "verify ks":
            output = case(line, r"^tetractl: no Tetrad ", 1, host=other)
            check("nothing of the library is said", "json.exception" not in output, output)
        odd.close()
    for wrong in "0", "x", "86401", "-1":
        case("status --timeout " + wrong, "--timeout is a whole number of seconds from 1 to 86400", 2)
