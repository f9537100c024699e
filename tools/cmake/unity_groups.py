# SPDX-License-Identifier: Apache-2.0
# Prints which sources may be compiled as one, for CMake: set(TETRAD_UNITY_<path> <group>).
#   unity_groups.py FOLDER...    from the top of the tree
#
# Sources of one folder are put together, in the order of their names, up to LINES_MAX lines. Two that give one name to
# different things do not stand together: names of anonymous namespaces, static functions, aliases. A source stays alone
# when one of its own names is also a name of a header, since another source of the group may include that header, and
# when it defines a macro or opens a namespace for the rest of the file. Sources with switches for known mistakes have
# groups of their own: tests/simulation links these a second time, with the switches, in place of the rooms' objects.
import re
import sys
from pathlib import Path

LINES_MAX = 2400
BLANKED = re.compile(r'//[^\n]*|/\*.*?\*/|R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.S)
PREPROCESSOR = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*", re.M)
NAMESPACE = re.compile(r"(?:^|\s)(?:inline\s+)?namespace(?:\s+([\w:]+))?\s*$")
TYPE = re.compile(r"\b(?:class|struct|union|enum(?:\s+(?:class|struct))?)\s+(?:\[\[[^\]]*\]\]\s*)?(\w+)(?!\s*::)")


def name_of(declaration):
    """The name that a declaration at namespace scope gives, or None."""
    text = re.sub(r"\[\[.*?\]\]|\balignas\s*\([^)]*\)", " ", declaration.strip())
    while re.match(r"template\s*<", text):  # away with the parameters of a template
        depth, at = 0, text.index("<")
        while at < len(text):
            depth += {"<": 1, ">": -1}.get(text[at], 0)
            at += 1
            if depth == 0:
                break
        text = re.sub(r"^\s*requires\b[^;{]*?(?=\b(?:auto|void|bool|Result|std::))", "", text[at:]).strip()
    alias = re.match(r"using\s+(?:namespace\s+)?(?:(\w+)\s*=|(?:\w+::)*(\w+)$)", text)
    if alias:
        return alias.group(1) or alias.group(2)
    kind = TYPE.match(re.sub(r"^(?:typedef|static|constexpr|inline)\s+", "", text))
    if kind and "(" not in text:
        return kind.group(1)
    head = re.split(r"[=({\[;]", re.sub(r"<[^<>()]*>", " ", re.sub(r"<[^<>()]*>", " ", text)), maxsplit=1)[0]
    names = re.findall(r"[\w:~]+", head)
    return names[-1] if names and "::" not in names[-1] and len(names) > 1 else None


def declarations(text):
    """(namespaces around it, None for an anonymous one; declaration) for all at namespace scope."""
    text = re.sub(r"(?<=[0-9a-fA-F])'(?=[0-9a-fA-F])", "", text)  # no literal begins in a number
    text = PREPROCESSOR.sub(" ", BLANKED.sub(lambda match: " " if match.group().startswith("/") else '""', text))
    scopes, inner, begin = [], 0, 0  # inner: depth of braces that are no namespace's
    for match in re.finditer(r"[{};]", text):
        sign, at = match.group(), match.start()
        if sign == "{":
            opened = NAMESPACE.search(text[begin:at]) if inner == 0 else None
            if opened:
                scopes.append(opened.group(1))
                begin = at + 1
                continue
            if inner == 0:
                yield tuple(scopes), text[begin:at].strip()
            inner += 1
        elif sign == "}":
            if inner > 0:
                inner -= 1
            elif scopes:
                scopes.pop()
            if inner == 0:
                begin = at + 1
        elif inner == 0:
            yield tuple(scopes), text[begin:at].strip()
            begin = at + 1


def own_names(text):
    """{(namespace, name): what it is} of what only this source means by a name."""
    names = {}
    for scopes, declaration in declarations(text):
        if None in scopes or re.match(r"static\b|using\b", declaration):
            name = name_of(declaration)
            used = re.match(r"using\s+(?!namespace)[\w:]+$", declaration)  # one thing under its own name: harmless twice
            names[named(scopes), name] = declaration if used else text
    return {key: what for key, what in names.items() if key[1]}


def named(scopes):
    return "::".join(scope for scope in scopes if scope)


def enclosing(namespace):
    """It and all around it."""
    parts = namespace.split("::")
    return ["::".join(parts[:count]) for count in range(len(parts), -1, -1)]


def main():
    sources, headers = [], set()
    for folder in sys.argv[1:]:
        sources += Path(folder).rglob("*.cc")
        for header in Path(folder).rglob("*.h"):
            headers |= {(named(scopes), name_of(each)) for scopes, each in declarations(header.read_text())}
    groups = {}  # of a folder: [lines, names] of each group
    for source in sorted(sources):
        text = source.read_text()
        names, length = own_names(text), text.count("\n")
        shared = any(
            not what.startswith("using") and (outer, name) in headers
            for (namespace, name), what in names.items()
            for outer in enclosing(namespace)
        )
        if shared or re.search(r"^\s*#\s*define\b|^using namespace\b", text, re.M):
            continue
        switches = "TETRAD_MUTANT(" in text
        of_folder = groups.setdefault((source.parent, switches), [])
        for number, group in enumerate(of_folder):
            if group[0] + length <= LINES_MAX and all(group[1].get(key, what) == what for key, what in names.items()):
                break
        else:
            number, group = len(of_folder), [0, {}]
            of_folder.append(group)
        group[0] += length
        group[1] |= names
        print(f'set("TETRAD_UNITY_{source}" {source.parent.name}_{"switches_" * switches}{number})')


main()
