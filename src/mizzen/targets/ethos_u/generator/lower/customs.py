"""Operators that TOSA has no exact form of: a rule by name, as their front-end calls them.

Such an operation says in JSON what its kernel computes with: see the front-end's descriptions.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from mizzen.ops.control_flow import Custom
from mizzen.targets.ethos_u.generator.lower.context import Node
from mizzen.targets.ethos_u.generator.lower.planning import Site, rule
from mizzen.targets.ethos_u.generator.lower.refusing import need
from mizzen.targets.ethos_u.machine.commands_values import Arch

CustomRule = Callable[[Site, dict[str, Any]], Node]
CUSTOM_RULES: dict[str, CustomRule] = {}
CUSTOM_RULES_U85: dict[str, CustomRule] = {}
"""Those that use what only U85 has."""


def custom_rule(name: str) -> Callable[[CustomRule], CustomRule]:
    """Register the rule of an operator."""

    def register(function: CustomRule) -> CustomRule:
        CUSTOM_RULES[name] = function
        return function

    return register


def custom_rule_u85(name: str) -> Callable[[CustomRule], CustomRule]:
    """Register the rule of an operator that U85 alone has."""

    def register(function: CustomRule) -> CustomRule:
        CUSTOM_RULES_U85[name] = function
        return function

    return register


def rule_of(name: str, arch: Arch) -> CustomRule | None:
    """Return the rule for operators of a name."""
    own = CUSTOM_RULES_U85.get(name) if arch is Arch.U85 else None
    return own or CUSTOM_RULES.get(name)


def has_rule(operation: Custom, arch: Arch) -> bool:
    """Whether there is a rule for operators of this name."""
    return rule_of(operation.operator_name, arch) is not None


@rule(Custom)
def custom(site: Site) -> Node:
    """An operator that is not TOSA's."""
    operation = site.operation
    assert isinstance(operation, Custom)
    name = operation.operator_name
    found = rule_of(name, site.arch)
    need(found is not None, f"no rule has a form of {name.partition('.')[2] or name}")
    assert found is not None
    need(not site.steps, "its result is an operator's of its own")
    return found(site, options_of(operation))


def options_of(operation: Custom) -> dict[str, Any]:
    """Return what the operation's kernel computes with, as far as its front-end says."""
    return json.loads(operation.implementation_attrs).get("options") or {}
