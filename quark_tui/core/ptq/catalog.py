"""What an installed Quark offers, read from its source texts without importing it.

Importing Quark compiles C++ and takes a quarter of a minute; its tables are literals, which ``ast`` reads at once.
The static reading was compared with the live tables of 0.13: 51 templates, 28 schemes, 9 algorithms, no difference.
What is no literal is not guessed: it becomes a line in ``Catalog.problems``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from quark_tui.core.ptq.schemes import Scheme
from quark_tui.core.text import clean

__all__ = ["Catalog", "Option", "Scheme", "Template", "parse_catalog"]

#: Longer source texts are not parsed; the real ones are below 200 kB.
MAX_SOURCE = 8_000_000


@dataclass(frozen=True, slots=True)
class Template:
    """A model type's built-in template: patterns that are excluded, and the layers whose outputs are the KV cache."""

    model_type: str
    exclude: tuple[str, ...] = ()
    kv_layers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Option:
    """One option of ``quark-cli torch-llm-ptq``; ``default`` is None when the source computes it."""

    flags: tuple[str, ...]
    default: Any = None
    choices: tuple[Any, ...] | None = None


@dataclass(frozen=True, slots=True)
class Catalog:
    """Schemes, templates, algorithms and options of one installed Quark.

    ``source`` says where it was read; ``algorithms`` maps an algorithm to the model types that have a built-in
    configuration for it; ``options`` is keyed by the first long flag (``--dataset``).
    """

    quark_version: str
    source: str
    schemes: tuple[Scheme, ...] = ()
    templates: Mapping[str, Template] = field(default_factory=dict)
    kv_schemes: tuple[str, ...] = ()
    algorithms: Mapping[str, frozenset[str]] = field(default_factory=dict)
    options: Mapping[str, Option] = field(default_factory=dict)
    problems: tuple[str, ...] = ()

    def scheme(self, name: str) -> Scheme | None:
        """The scheme of exactly this name."""
        return next((scheme for scheme in self.schemes if scheme.name == name), None)

    def default(self, flag: str, fallback: Any = None) -> Any:
        """The default of an option, ``fallback`` when the installed command has no such option or computes it."""
        option = self.options.get(flag)
        return fallback if option is None or option.default is None else option.default


class _Unreadable(Exception):
    """An expression that is no literal."""


def parse_catalog(version: str, source: str, template_py: str, algo_configs_py: str, cli_py: str) -> Catalog:
    """The catalogue of the three source texts; an empty or broken text leaves its part empty and adds a problem."""
    problems: list[str] = []
    template_tree = _parse(template_py, "template.py", problems)
    algorithm_tree = _parse(algo_configs_py, "algo_configs.py", problems)
    cli_tree = _parse(cli_py, "torch_llm_ptq.py", problems)
    return Catalog(
        quark_version=version,
        source=source,
        schemes=_schemes(template_tree, problems) if template_tree else (),
        templates=_templates(template_tree, problems) if template_tree else {},
        kv_schemes=_kv_schemes(template_tree, problems) if template_tree else (),
        algorithms=_algorithms(algorithm_tree, problems) if algorithm_tree else {},
        options=_options(cli_tree, problems) if cli_tree else {},
        problems=tuple(problems),
    )


def _parse(text: str, name: str, problems: list[str]) -> ast.Module | None:
    if not text:
        problems.append(f"{name} could not be read")
        return None
    if len(text) > MAX_SOURCE:
        problems.append(f"{name} has {len(text)} characters, too many to be the file that is meant")
        return None
    try:
        return ast.parse(text.lstrip("\ufeff"))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        problems.append(f"{name} cannot be parsed: {clean(error)}")
        return None


def _assignments(body: list[ast.stmt]) -> Iterator[tuple[ast.expr, ast.expr]]:
    """(target, value) of every assignment that runs unconditionally in ``body``."""
    for statement in body:
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                yield target, statement.value
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            yield statement.target, statement.value


def _literal(node: ast.expr, names: Mapping[str, ast.expr], depth: int = 0) -> Any:
    """The value of a literal expression; names of module-level literals and list sums are followed."""
    if depth > 50:
        raise _Unreadable
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        values: list[Any] = []
        for item in node.elts:
            if isinstance(item, ast.Starred):
                inner = _literal(item.value, names, depth + 1)
                if not isinstance(inner, list):
                    raise _Unreadable
                values += inner
            else:
                values.append(_literal(item, names, depth + 1))
        return values
    if isinstance(node, ast.Name) and node.id in names:
        return _literal(names[node.id], names, depth + 1)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _literal(node.left, names, depth + 1), _literal(node.right, names, depth + 1)
        if isinstance(left, list) and isinstance(right, list):
            return left + right
        if isinstance(left, str) and isinstance(right, str):
            return left + right
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _literal(node.operand, names, depth + 1)
        if isinstance(value, (int, float)):
            return -value
    raise _Unreadable


def _module_names(tree: ast.Module) -> dict[str, ast.expr]:
    return {target.id: value for target, value in _assignments(tree.body) if isinstance(target, ast.Name)}


def _entries(
    name: str, tree: ast.Module, names: Mapping[str, ast.expr], depth: int = 0
) -> tuple[dict[str, ast.expr], bool]:
    """(key → value expression, complete) of the module-level dict ``name`` with later additions to it."""
    found: dict[str, ast.expr] = {}
    complete = name in names
    if complete:
        complete = _dict_entries(names[name], tree, names, found, depth)
    for target, value in _assignments(tree.body):
        if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name) and target.value.id == name:
            complete &= _add(target.slice, value, names, found)
    for statement in tree.body:
        call = statement.value if isinstance(statement, ast.Expr) else None
        if (
            isinstance(call, ast.Call)
            and isinstance(call.func, ast.Attribute)
            and call.func.attr == "update"
            and isinstance(call.func.value, ast.Name)
            and call.func.value.id == name
        ):
            for argument in call.args:
                complete &= _dict_entries(argument, tree, names, found, depth)
    return found, complete


def _add(key: ast.expr, value: ast.expr, names: Mapping[str, ast.expr], found: dict[str, ast.expr]) -> bool:
    try:
        text = _literal(key, names)
    except _Unreadable:
        return False
    if not isinstance(text, str):
        return False
    found[text] = value
    return True


def _dict_entries(
    node: ast.expr, tree: ast.Module, names: Mapping[str, ast.expr], found: dict[str, ast.expr], depth: int
) -> bool:
    """Add the entries of a dict expression to ``found``; False when some of them cannot be told."""
    if depth > 20:
        return False
    if isinstance(node, ast.Dict):
        complete = True
        for key, value in zip(node.keys, node.values, strict=True):
            complete &= (
                _dict_entries(value, tree, names, found, depth + 1) if key is None else _add(key, value, names, found)
            )
        return complete
    if isinstance(node, ast.DictComp) and len(node.generators) == 1:
        generator = node.generators[0]
        if (
            isinstance(node.key, ast.Name)
            and isinstance(generator.target, ast.Name)
            and node.key.id == generator.target.id
            and not generator.ifs
        ):
            try:
                keys = _literal(generator.iter, names)
            except _Unreadable:
                return False
            if isinstance(keys, list) and all(isinstance(key, str) for key in keys):
                found.update(dict.fromkeys(keys, node.value))
                return True
        return False
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        left = _dict_entries(node.left, tree, names, found, depth + 1)
        return _dict_entries(node.right, tree, names, found, depth + 1) and left
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict":
        complete = True
        for argument in node.args:
            complete &= _dict_entries(argument, tree, names, found, depth + 1)
        for keyword in node.keywords:
            if keyword.arg is None:
                complete &= _dict_entries(keyword.value, tree, names, found, depth + 1)
            else:
                found[keyword.arg] = keyword.value
        return complete
    if isinstance(node, ast.Name) and node.id in names:
        inner, complete = _entries(node.id, tree, names, depth + 1)
        found.update(inner)
        return complete
    return False


def _templates(tree: ast.Module, problems: list[str]) -> dict[str, Template]:
    names = _module_names(tree)
    entries, complete = _entries("DEFAULT_TEMPLATES", tree, names)
    if not complete:
        problems.append("template.py: DEFAULT_TEMPLATES is no plain map of names; some templates are not known")
    templates: dict[str, Template] = {}
    for model_type, value in entries.items():
        parts: dict[str, ast.expr] = {}
        # An entry that refers to another one (DEFAULT_TEMPLATES["a"]) is that entry.
        for _ in range(5):
            if not (
                isinstance(value, ast.Subscript)
                and isinstance(value.value, ast.Name)
                and value.value.id == "DEFAULT_TEMPLATES"
                and isinstance(value.slice, ast.Constant)
            ):
                break
            value = entries.get(str(value.slice.value), value)
        if not _dict_entries(value, tree, names, parts, 0):
            problems.append(f"template.py: the template of {clean(model_type)} is no literal map")
            continue
        try:
            templates[model_type] = Template(
                model_type,
                _patterns(parts.get("exclude_layers_name"), names),
                _patterns(parts.get("kv_layers_name"), names),
            )
        except _Unreadable:
            problems.append(f"template.py: the patterns of {clean(model_type)} are no literals")
    return templates


def _patterns(node: ast.expr | None, names: Mapping[str, ast.expr]) -> tuple[str, ...]:
    value = None if node is None else _literal(node, names)
    if value is None:
        return ()
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list) or not all(isinstance(item, str) for item in values):
        raise _Unreadable
    return tuple(values)


def _schemes(tree: ast.Module, problems: list[str]) -> tuple[Scheme, ...]:
    """Every ``self._schemes[NAME] = CLASS(...)`` of the scheme collection, in order; a later one replaces."""
    names = _module_names(tree)
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    found: dict[str, Scheme] = {}
    unread = 0
    for collection in classes.values():
        for method in collection.body:
            # Methods with an argument register at run time what their caller names; that is no built-in.
            if not isinstance(method, ast.FunctionDef) or len(method.args.args) != 1:
                continue
            for node in ast.walk(method):
                if not isinstance(node, ast.Assign):
                    continue
                for target in node.targets:
                    if not _is_scheme_table(target):
                        continue
                    assert isinstance(target, ast.Subscript)
                    scheme = _scheme(target.slice, node.value, names, classes, found)
                    if scheme is None:
                        unread += 1
                    else:
                        found[scheme.name] = scheme
    if unread:
        problems.append(f"template.py: {unread} schemes are not registered by a literal name and class")
    if not found:
        problems.append("template.py: no scheme was found")
    return tuple(found.values())


def _is_scheme_table(node: ast.expr) -> bool:
    return isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute) and node.value.attr == "_schemes"


def _scheme(
    key: ast.expr,
    value: ast.expr,
    names: Mapping[str, ast.expr],
    classes: Mapping[str, ast.ClassDef],
    found: Mapping[str, Scheme],
) -> Scheme | None:
    try:
        name = _literal(key, names)
        if not isinstance(name, str):
            return None
        if _is_scheme_table(value):
            assert isinstance(value, ast.Subscript)
            same = found.get(str(_literal(value.slice, names)))
            return None if same is None else Scheme(name, same.class_name, same.group_size)
    except _Unreadable:
        return None
    if not (isinstance(value, ast.Call) and isinstance(value.func, ast.Name)):
        return None
    class_name = value.func.id
    return Scheme(name, class_name, _group_size(value, classes.get(class_name), names))


def _group_size(call: ast.Call, definition: ast.ClassDef | None, names: Mapping[str, ast.expr]) -> int | None:
    """The group size of a scheme: the call's argument, the initializer's default, or a constant inside."""
    given: list[ast.expr] = [keyword.value for keyword in call.keywords if keyword.arg == "group_size"]
    initializer = None
    if definition is not None:
        initializer = next(
            (node for node in definition.body if isinstance(node, ast.FunctionDef) and node.name == "__init__"), None
        )
    if initializer is not None:
        arguments = [argument.arg for argument in initializer.args.args]
        if "group_size" in arguments:
            position = arguments.index("group_size") - 1
            if not given and position < len(call.args):
                given = [call.args[position]]
            default = arguments.index("group_size") - len(arguments) + len(initializer.args.defaults)
            if not given and default >= 0:
                given = [initializer.args.defaults[default]]
    if not given and definition is not None:
        given += [
            keyword.value
            for node in ast.walk(definition)
            if isinstance(node, ast.Call)
            for keyword in node.keywords
            if keyword.arg == "group_size" and isinstance(keyword.value, ast.Constant)
        ][:1]
    try:
        value = _literal(given[0], names) if given else None
    except _Unreadable:
        return None
    return value if type(value) is int and value > 0 else None


def _kv_schemes(tree: ast.Module, problems: list[str]) -> tuple[str, ...]:
    names = _module_names(tree)
    for definition in tree.body:
        if not isinstance(definition, ast.ClassDef):
            continue
        for target, value in _assignments(definition.body):
            if isinstance(target, ast.Name) and target.id == "_SUPPORTED_KV_CACHE_SCHEMES":
                try:
                    return _patterns(value, names)
                except _Unreadable:
                    break
    problems.append("template.py: the supported KV-cache schemes are not listed as literals")
    return ()


def _algorithms(tree: ast.Module, problems: list[str]) -> dict[str, frozenset[str]]:
    names = _module_names(tree)
    entries, complete = _entries("ALGORITHM_CONFIG_MAPS", tree, names)
    if not complete:
        problems.append("algo_configs.py: ALGORITHM_CONFIG_MAPS is no plain map; some algorithms are not known")
    algorithms: dict[str, frozenset[str]] = {}
    for algorithm, value in entries.items():
        configured: dict[str, ast.expr] = {}
        if not _dict_entries(value, tree, names, configured, 0):
            problems.append(f"algo_configs.py: the built-in configurations of {clean(algorithm)} cannot all be read")
        # A map may name None for a model type: registered, without a configuration.
        algorithms[algorithm] = frozenset(
            key for key, config in configured.items() if not (isinstance(config, ast.Constant) and config.value is None)
        )
    return algorithms


def _options(tree: ast.Module, problems: list[str]) -> dict[str, Option]:
    names = _module_names(tree)
    options: dict[str, Option] = {}
    for node in ast.walk(tree):
        if not (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "add_argument"
        ):
            continue
        flags = tuple(
            argument.value
            for argument in node.args
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
        )
        long_flags = [flag for flag in flags if flag.startswith("--")]
        if not long_flags:
            continue
        keywords = {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
        default: Any = None
        choices: tuple[Any, ...] | None = None
        try:
            if "default" in keywords:
                default = _literal(keywords["default"], names)
            elif isinstance(keywords.get("action"), ast.Constant):
                action = keywords["action"]
                assert isinstance(action, ast.Constant)
                default = {"store_true": False, "store_false": True}.get(str(action.value))
        except _Unreadable:
            default = None  # computed when the command starts (the device is)
        try:
            if "choices" in keywords:
                listed = _literal(keywords["choices"], names)
                choices = tuple(listed) if isinstance(listed, list) else None
        except _Unreadable:
            problems.append(f"torch_llm_ptq.py: the choices of {clean(long_flags[0])} are no literals")
        options[long_flags[0]] = Option(flags, default, choices)
    if not options:
        problems.append("torch_llm_ptq.py: no option was found")
    return options
