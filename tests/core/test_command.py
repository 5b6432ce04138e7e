"""A command is exact: what a shell would read back, what the record keeps, which variables matter."""

from __future__ import annotations

import json
import shlex

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quark_tui.core.command import Command, decides_a_run

TEXT = st.text(st.characters(exclude_categories=[], exclude_characters="\0"), max_size=6)
WORDS = st.lists(TEXT, max_size=4).map(tuple)
COMMANDS = st.builds(Command, WORDS, TEXT, st.dictionaries(TEXT, TEXT, max_size=3), WORDS, WORDS, WORDS, TEXT)


@settings(deadline=None)
@given(COMMANDS)
def test_the_record_gives_the_same_command_back(command: Command) -> None:
    written = json.loads(json.dumps(command.to_json()))
    assert Command.from_json(written) == command
    assert Command.from_json(written).digestible() == command.digestible()


@settings(deadline=None)
@given(COMMANDS)
def test_the_shell_text_is_the_same_argv(command: Command) -> None:
    """P-82: every value is one argv item and quoted in the preview."""
    assert tuple(shlex.split(command.shell)) == command.argv


@settings(deadline=None)
@given(COMMANDS)
def test_option_lines_hold_every_item_once_and_in_order(command: Command) -> None:
    items = [item for option, values in command.option_lines() for item in (option, *shlex.split(values))]
    assert items == list(command.argv)


def test_options_stand_one_a_line_with_their_values() -> None:
    command = Command(("quark-cli", "torch-llm-ptq", "--x", "a b", "c", "--flag"), "/")
    assert command.option_lines() == [("quark-cli", "torch-llm-ptq"), ("--x", "'a b' c"), ("--flag", "")]
    assert Command((), "/").option_lines() == []


@pytest.mark.parametrize(
    "name",
    ["HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HSA_OVERRIDE_GFX_VERSION", "HF_HOME",
     "PYTHONPATH", "LD_PRELOAD", "OMP_NUM_THREADS", "PATH", "TMPDIR", "https_proxy", "QUARK_LOG_LEVEL", "NCCL_DEBUG",
     "PYTORCH_HIP_ALLOC_CONF", "TORCH_EXTENSIONS_DIR", "TRANSFORMERS_OFFLINE", "VLLM_USE_V1", "AITER_X"],
)  # fmt: skip
def test_variables_that_decide_a_run(name: str) -> None:
    assert decides_a_run(name)


@pytest.mark.parametrize("name", ["TERM", "COLUMNS", "LINES", "SSH_TTY", "OLDPWD", "_", "SHLVL", "COLORTERM", ""])
def test_a_terminals_own_noise_decides_nothing(name: str) -> None:
    assert not decides_a_run(name)
