#!/usr/bin/env python3
"""The public surface: what programs, scripts and code of others may use, a line for each name.

    tools/surface.py           prints it
    tools/surface.py --write   writes it to tests/surface/VERSION.txt: at a release (CONTRIBUTING.md)

It is read from files that tests keep current: options and choices of commands from docs/reference/commands.md, fields of JSON from
docs/schema, warnings from docs/reference/warnings.md, names of Python from python/tilecast, declarations of C++ from include/tilecast.
"""
import ast
import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "tests" / "surface"
OPTION = re.compile(r"^  (?:-\w, )?(--[a-z0-9-]+)(?: ([^ \[\n]+))?", re.M)
ARGUMENT = re.compile(r"^  ([A-Z_]+)(?: \.\.\.)? ", re.M)


def version():
    return re.search(r"project\(tilecast VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8"))[1]


def commands():
    """Commands, their arguments, options and closed lists of values."""
    text = (ROOT / "docs/reference/commands.md").read_text(encoding="utf-8")
    for name, block in re.findall(r"^## (\w+)\n```\n(.*?)```", text, re.M | re.S):
        yield f"command {name}"
        arguments = block.partition("\nArguments:\n")[2].partition("\n\n")[0]
        yield from (f"command {name} {word}" for word in ARGUMENT.findall(arguments))
        for option, value in OPTION.findall(block):
            yield f"command {name} {option}"
            if "|" in value:
                yield from (f"command {name} {option} {choice}" for choice in value.split("|") if not choice.isupper())


def fields(schema, where, parts, open_parts):
    """Each field below a schema with its type; parts are those of $defs, which may hold themselves."""
    if "$ref" in schema:
        part = schema["$ref"].rpartition("/")[2]
        if part not in parts or part in open_parts:
            return
        schema, open_parts = parts[part], open_parts | {part}
    for name, field in schema.get("properties", {}).items():
        yield f"{where}.{name} {kind(field)}"
        yield from fields(field, f"{where}.{name}", parts, open_parts)
    for key, mark in (("items", "[]"), ("additionalProperties", ".*")):
        if isinstance(schema.get(key), dict):
            yield from fields(schema[key], where + mark, parts, open_parts)


def kind(schema):
    if "enum" in schema:
        return "word"
    found = schema.get("type", "object" if "$ref" in schema or "properties" in schema else "any")
    return "|".join(found) if isinstance(found, list) else found


def documents():
    for path in sorted((ROOT / "docs/schema").glob("*.schema.json")):
        schema = json.loads(path.read_text(encoding="utf-8"))
        name = "json " + path.name.removesuffix(".schema.json")
        yield name
        yield from fields(schema, name, schema.get("$defs", {}), frozenset())


def warnings():
    text = (ROOT / "docs/reference/warnings.md").read_text(encoding="utf-8")
    return (f"warning {code}" for code in re.findall(r"^## (\w+)$", text, re.M))


def parameters(function):
    arguments = function.args
    names = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return [each.arg for each in names if each.arg not in ("self", "cls")]


def python_members(tree, module, public):
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and public(node.name):
            yield f"{module}.{node.name}()"
            yield from (f"{module}.{node.name}({name})" for name in parameters(node))
        elif isinstance(node, ast.ClassDef) and public(node.name):
            yield f"{module}.{node.name}"
            for member in node.body:
                if isinstance(member, ast.AnnAssign):
                    yield f"{module}.{node.name}.{member.target.id}"
                elif isinstance(member, ast.FunctionDef) and (not member.name.startswith("_") or member.name == "__init__"):
                    yield f"{module}.{node.name}.{member.name}()"
                    yield from (f"{module}.{node.name}.{member.name}({name})" for name in parameters(member))


def results_of(package):
    """What functions return that are defined in private modules: names that the package imports for its types alone."""
    for node in ast.walk(ast.parse((package / "__init__.py").read_text(encoding="utf-8"))):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for line in node.body:
                module = package / line.module if isinstance(line, ast.ImportFrom) and line.level == 1 else None
                if module is not None and (module / "__init__.py").exists():
                    names = [alias.name for alias in line.names]
                    tree = ast.parse((module / "__init__.py").read_text(encoding="utf-8"))
                    yield from python_members(tree, "python tilecast", lambda name, names=names: name in names)


def python():
    """What `import tilecast` exports, with keywords and attributes of results, and what its other modules export."""
    for path in sorted((ROOT / "python/tilecast").rglob("*.py")):
        parts = path.relative_to(ROOT / "python").with_suffix("").parts
        if any(part.startswith("_") and part != "__init__" for part in parts):
            continue
        module = "python " + ".".join(part for part in parts if part != "__init__")
        tree = ast.parse(path.read_text(encoding="utf-8"))
        exported = [name for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
                    for name in ast.literal_eval(node.value)]
        if not exported:
            continue
        yield from (f"{module}.{name}" for name in exported)
        yield from python_members(tree, module, lambda name, names=exported: name in names)
    yield from results_of(ROOT / "python/tilecast")
    stubs = ast.parse((ROOT / "python/tilecast/_core.pyi").read_text(encoding="utf-8"))
    yield from python_members(stubs, "python tilecast", lambda name: not name.startswith("_"))


def without_comments(text):
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    text = re.sub(r"//[^\n]*", "", text)
    return re.sub(r"^\s*#(?:.*\\\n)*.*$", "", text, flags=re.M)


def declarators(statement):
    """The declarations of a statement without their default values: `int a = 1, b;` has two."""
    if "(" in statement.partition("=")[0] or re.match(r"(?:using|friend|template|enum|struct|class|extern)\b", statement):
        yield re.sub(r"\s+", " ", statement)
        return
    pieces, depth, piece = [], 0, ""
    for letter in statement:
        depth += letter in "<({[" and 1 or letter in ">)}]" and -1 or 0
        if letter == "," and depth == 0:
            pieces.append(piece)
            piece = ""
        else:
            piece += letter
    names = [re.sub(r"\s+", " ", re.split(r"[={]", each)[0]).strip() for each in [*pieces, piece]]
    type_name = names[0].rpartition(" ")[0]
    yield names[0]
    yield from (f"{type_name} {name}" for name in names[1:])


def matching_brace(text, start):
    depth = 0
    for at in range(start, len(text)):
        depth += text[at] == "{" and 1 or text[at] == "}" and -1 or 0
        if depth == 0:
            return at
    raise ValueError("a brace is not closed")


def declarations(text):
    """The public declarations of a header: what its namespaces, structs and public parts of classes hold."""
    scopes, statement, at = [], "", 0  # of a scope: its name, whether it is public now
    while at < len(text):
        letter = text[at]
        if letter == ":" and statement.strip() in ("public", "private", "protected"):
            scopes[-1][1] = statement.strip() == "public"
            statement = ""
        elif letter == "{":
            head = re.match(r"\s*(?:template\s*<.*>\s*)?(namespace|struct|class|enum(?: class)?)\s+([\w:]+)[^()]*$", statement, re.S)
            if head and head[1].startswith("enum"):
                end = matching_brace(text, at)
                name = "::".join([scope[0] for scope in scopes if scope[0]] + [head[2]])
                if all(scope[1] for scope in scopes):
                    yield f"enum {name}"
                    for value in text[at + 1:end].split(","):
                        if value.strip():
                            yield f"enum {name}::{value.partition('=')[0].strip()}"
                at, statement = end, ""
            elif head:
                name = "" if head[1] == "namespace" else head[2]
                if name and all(scope[1] for scope in scopes):
                    yield f"{head[1]} " + "::".join([scope[0] for scope in scopes if scope[0]] + [name])
                scopes.append([name, head[1] != "class"])
                statement = ""
            else:
                end = matching_brace(text, at)
                function = re.search(r"\)[\sa-z]*(?::.*)?$", statement, re.S) and "=" not in re.sub(r"operator\W+", "", statement).partition("(")[0]
                if function:  # its body is no part of its declaration
                    statement = re.split(r"\)\s*:(?!:)", statement)[0] + (")" if re.search(r"\)\s*:(?!:)", statement) else "")
                    yield from named(scopes, statement)
                    statement = ""
                else:
                    statement += text[at:end + 1]
                at = end
        elif letter == "}":
            scopes.pop()
            statement = ""
        elif letter == ";":
            yield from named(scopes, statement)
            statement = ""
        else:
            statement += letter
        at += 1


def named(scopes, statement):
    if statement.strip() and all(scope[1] for scope in scopes):
        scope = "::".join(scope[0] for scope in scopes if scope[0])
        yield from (f"{scope + ': ' if scope else ''}{each}" for each in declarators(statement.strip()))


def cpp():
    for header in sorted((ROOT / "include/tilecast").glob("*.h")):
        for each in declarations(without_comments(header.read_text(encoding="utf-8"))):
            yield f"c++ {header.name} {each}"


def surface():
    return sorted({line for part in (commands, documents, warnings, python, cpp) for line in part()})


def main():
    lines = "\n".join(surface()) + "\n"
    if "--write" in sys.argv[1:]:
        (FOLDER / f"{version()}.txt").write_text(lines, encoding="utf-8")
    else:
        sys.stdout.write(lines)


if __name__ == "__main__":
    main()
