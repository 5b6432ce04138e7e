"""Foreign text is made safe, short and free of credentials, and numbers become words."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from quark_tui.core.text import (
    MAX_MARKS,
    cell_width,
    clean,
    clean_lines,
    elide_end,
    elide_middle,
    has_credentials,
    human_bytes,
    human_duration,
    is_secret_name,
    pad,
    redact,
    redact_env,
)

ANY = st.text(st.characters(exclude_categories=[]), max_size=40)
# Texts in which what is dangerous is likely.
HOSTILE = st.lists(
    st.one_of(
        ANY,
        st.sampled_from(
            [
                "\u0301",
                "\u00ad",
                "\u200d",
                "\u180e",
                "\ufe0f",
                "\U000e0041",
                "\U000e0100",
                "\u202e",
                "\x1b",
                "\x9b",
                "\u3164",
                "日",
                "👩",
                "e\u030b",
                "\\",
                "a",
            ]
        ),
    ),
    max_size=20,
).map("".join)


class Unspeakable:
    def __str__(self) -> str:
        raise RuntimeError("no words")


@settings(deadline=None)
@given(HOSTILE)
def test_clean_text_is_one_visible_line_that_stays_as_it_is(text: str) -> None:
    cleaned = clean(text)
    assert not [c for c in cleaned if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")]
    assert clean(cleaned) == cleaned
    assert cleaned.isprintable()
    assert len(cleaned.splitlines()) <= 1
    cleaned.encode()


@settings(deadline=None)
@given(HOSTILE)
def test_marks_never_stack_high_and_never_lack_a_base(text: str) -> None:
    run = MAX_MARKS
    for char in clean(text):
        run = run + 1 if unicodedata.category(char) in ("Mn", "Me") else 0
        assert run <= MAX_MARKS


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[31mb", "a\\x1b[31mb"),
        ("a\u00adb", "a\\xadb"),
        ("a\u180eb", "a\\u180eb"),
        ("a\u2028b", "a\\u2028b"),
        ("a\u00a0b", "a\\xa0b"),
        ("a\u3000b", "a\\u3000b"),
        ("a\U000e0041b", "a\\U000e0041b"),
        ("a\ufe0fb", "a\\ufe0fb"),
        ("a\U000e0100b", "a\\U000e0100b"),
        ("a\u3164b", "a\\u3164b"),
        ("a\u034fb", "a\\u034fb"),
        ("abc\u202edef", "abc\\u202edef"),
        ("a\ud800b", "a\\ud800b"),
        ("\u0301a", "\\u0301a"),
        ("a" + "\u0301" * (MAX_MARKS + 2), "a" + "\u0301" * MAX_MARKS + "\\u0301\\u0301"),
    ],
)
def test_what_acts_or_hides_is_shown_as_an_escape(text: str, shown: str) -> None:
    assert clean(text) == shown


@pytest.mark.parametrize("text", ["modèle", "e\u0301", "模型", "ภาษาไทยที่", "हिन्दी", "עִבְרִית", "😀", "~/x y"])
def test_ordinary_writing_stays(text: str) -> None:
    assert clean(text) == text


@pytest.mark.parametrize("value", [10**5000, ValueError(10**5000), Unspeakable()], ids=["int", "error", "object"])
def test_objects_that_cannot_be_said_are_named_by_their_type(value: object) -> None:
    assert type(value).__name__ in clean(value)


def test_kept_characters_stay_and_lines_stay_lines() -> None:
    assert clean("a\tb", keep="\t") == "a\tb"
    assert clean_lines("a\r\n\tb\x07\n\u0301c") == "a\n    b\\x07\n\\u0301c"


@settings(deadline=None)
@given(HOSTILE, st.integers(-3, 60), st.sampled_from(["…", "...", "", "中"]))
def test_elided_text_is_never_wider_than_asked(text: str, cells: int, mark: str) -> None:
    for elide in (elide_middle, elide_end):
        short = elide(text, cells, mark)
        assert cell_width(short) <= max(0, cells)
        if cell_width(text) <= cells:
            assert short == text


def test_elision_keeps_the_end_of_a_path_and_no_mark_loses_its_base() -> None:
    assert elide_middle("/data/models/llama/model-1.safetensors", 20) == "/data/…1.safetensors"
    assert elide_middle("日本語日本語" + "ab\u0301c", 4) == "…b\u0301c"
    assert elide_middle("abcdefg日\u0301x", 3) == "…x"
    assert elide_end("abc", 0) == "" and elide_end("abcdef", 3) == "ab…"


@settings(deadline=None)
@given(HOSTILE, HOSTILE)
def test_widths_add_up(left: str, right: str) -> None:
    assert cell_width(left + right) == cell_width(left) + cell_width(right)


@pytest.mark.parametrize(
    ("text", "cells"), [("", 0), ("ab", 2), ("日本", 4), ("e\u0301", 1), ("\uff21", 2), ("a\u20dd", 1)]
)
def test_widths(text: str, cells: int) -> None:
    assert cell_width(text) == cells


@settings(deadline=None)
@given(HOSTILE, st.integers(-3, 60), st.booleans())
def test_padded_text_fills_its_cells(text: str, cells: int, right: bool) -> None:
    padded = pad(text, cells, right=right)
    assert cell_width(padded) == max(cells, cell_width(text))
    assert padded.endswith(text) if right else padded.startswith(text)


@pytest.mark.parametrize(
    ("size", "said"),
    [
        (None, "unknown"), (0, "0 B"), (1, "1 B"), (999, "999 B"), (1000, "1 kB"), (1049, "1.05 kB"),
        (999_499, "999 kB"), (999_500, "1 MB"), (163_000_000, "163 MB"), (10**9, "1 GB"), (70_550_000_000, "70.5 GB"),
        (10**12, "1 TB"), (10**15, "1 PB"), (10**18, "1 EB"), (10**21, "more than 1000 EB"), (-5, "-5 B"),
        (-2_000_000, "-2 MB"),
    ],
)  # fmt: skip
def test_sizes_in_words(size: int | None, said: str) -> None:
    assert human_bytes(size) == said


def test_numbers_beyond_all_sizes_are_still_words() -> None:
    assert human_bytes(10**5000) == "more than 1000 EB"
    assert human_duration(10**5000) == "more than 100 years"


@settings(deadline=None)
@given(st.integers(0, 10**22))
def test_sizes_are_short_and_near_the_truth(size: int) -> None:
    said = human_bytes(size)
    assert len(said) <= 17
    number, unit = said.rsplit(" ", 1)
    if not number.startswith("more"):
        power = {"B": 0, "kB": 3, "MB": 6, "GB": 9, "TB": 12, "PB": 15, "EB": 18}[unit]
        assert abs(float(number) * 10**power - size) <= size * 0.006


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (None, "unknown"), (float("nan"), "unknown"), (-1, "0 s"), (0.9, "0 s"), (59.9, "59 s"), (60, "1 min 0 s"),
        (599, "9 min 59 s"), (600, "10 min"), (3599, "59 min"), (3600, "1 h 0 min"), (172_799, "47 h 59 min"),
        (172_800, "2 d 0 h"), (float("inf"), "more than 100 years"), (1e300, "more than 100 years"),
        (float("-inf"), "0 s"),
    ],
)  # fmt: skip
def test_spans_in_words(seconds: float | None, said: str) -> None:
    assert human_duration(seconds) == said


CREDENTIALS = [
    "https://S3CRET@host/simple",
    "https://S3CRET:@host/simple",
    "https://user:S3CRET@host/simple",
    "https://user:x@S3CRET@host/simple",
    "https://user:x/S3CRET@host/simple",
    "https://us%40er:S3CRET%2Fx@host/simple",
    "git+https://S3CRET@github.com/a/b.git",
    "ssh://user:S3CRET@host/x",
    "redis://:S3CRET@host",
    "some-very-long-option-name-that-ends-in-https://S3CRET@host",
    "https%3A%2F%2Fuser%3AS3CRET%40host",
    "https://h/x?token=S3CRET",
    "https://h/x?a=1&X-Amz-Signature=S3CRET&b=2",
    "https://h/x?private_token=S3CRET",
    "https://h/x#access_token=S3CRET",
    "Authorization: Bearer S3CRET",
    "curl -H 'Authorization: Basic S3CRET' x",
    "{'Authorization': 'Bearer S3CRET'}",
    "proxy-authorization=S3CRET",
    "bearer S3CRETabcdefghij",
    "X-Api-Key: S3CRET",
    "program --token=S3CRET --other x",
    "program --token S3CRET --other x",
    "program --api-key 'a S3CRET' --other x",
    "program --hf_token S3CRET",
    "program --aws-secret-access-key=S3CRET",
    "program --password S3CRET",
    "HF_TOKEN=S3CRET program",
    "AWS_SECRET_ACCESS_KEY=S3CRET/x+y",
    '{"api_key": "S3CRET"}',
    "login(password='S3CRET')",
    "hf_S3CRETabcdefghijklmnopqrstuvwxyz",
    "ghp_S3CRETabcdefghijklmnopqrstuvwxyz",
    "github_pat_S3CRETabcdefghijklmnopqrst",
    "glpat-S3CRETabcdefghijklmn",
    "AKIAS3CRETABCDEFGHIJ",
    "sk-proj-S3CRETabcdefghijk",
    "eyJS3CRETab.eyJzdWIiOiIx.abcdefgh",
]


@pytest.mark.parametrize("text", CREDENTIALS)
def test_credentials_are_hidden(text: str) -> None:
    """I-101: what is shown, stored or copied holds no credential."""
    for around in (text, f"said {text} and more", f"a\n{text}\nb", f'"{text}"'):
        assert "S3CRET" not in redact(around), redact(around)
    assert has_credentials(text)


@pytest.mark.parametrize(
    "text",
    [
        "/data/models/hf_quantizer/x",
        "/data/hf_transformersmodels",
        "bob@example.com",
        "user@host:path/x",
        "git@github.com:a/b.git",
        "ssh://git@github.com/a/b",
        "git+ssh://git@github.com/a/b.git",
        "git+https://github.com/a/b@v1.0",
        "https://host:8080/a@b",
        "http://[::1]:8000/x@y",
        "https://host/x?email=a@b.c",
        "docker://ubuntu@sha256:0123",
        "3f786850e387550fdab836ed7e6dc881de23001b",
        "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "--tokenizer /x",
        "--max-tokens 512",
        "--max_new_tokens=5",
        "--eos_token </s>",
        "{'eos_token': '</s>', 'token': 5}",
        "use --token to log in",
        "bearer of bad news and so forth",
        "sk-learn-contrib-something",
        "task-abcdefghijklmnopqrst1",
        "model.layers.0.self_attn.q_proj",
        "step_0001-of-0002.safetensors",
        "PATH=/usr/bin:/bin",
        "Token indices sequence length is longer (1234 > 512)",
    ],
)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert redact(text) == text and not has_credentials(text)


PIECES = st.lists(
    st.one_of(
        st.sampled_from([*CREDENTIALS, "://", "@", ":", "%40", "--token", "=", " ", "'", '"', "***", "?key=", "\n"]),
        ANY,
    ),
    max_size=6,
).map("".join)


@settings(deadline=None)
@given(PIECES)
@example("https://u:***@x@y")
def test_redacting_twice_is_redacting_once(text: str) -> None:
    once = redact(text)
    assert redact(once) == once
    assert not has_credentials(once)


@settings(deadline=None)
@given(PIECES)
@example("--\u017fecret S3CRET --api-\u212aey S3CRET")
def test_what_is_passed_over_at_first_sight_holds_nothing(text: str) -> None:
    """Most texts are let through without trying a pattern; none of the patterns would have found anything in them."""
    quick = redact(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("quark_tui.core.text._HINTS", ("",))
        assert redact(text) == quick


@pytest.mark.parametrize(
    "seed",
    ["a", "a.", "a://", "a://b:c", "://a:b", "eyJ-", "--token '", "?token=", "hf_", "sk-a", "authorization:",
     "bearer a", "https%3a%2f%2f", "%3a%2f%2fa", "A_", "-", "'\"", "ssh://", "--ci-"],
)  # fmt: skip
def test_no_text_makes_redaction_run_away(seed: str) -> None:
    # With work that grows with the square of the length this would take minutes.
    redact(seed * (100_000 // len(seed)))


@pytest.mark.parametrize(
    "name",
    ["HF_TOKEN", "hf_token", "HFTOKEN", "GITHUB_PAT", "AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID", "OPENAI_API_KEY",
     "PGPASSWORD", "DB_PASS", "SSHPASS", "MYSQL_PWD", "GOOGLE_APPLICATION_CREDENTIALS", "WANDB_KEY", "HTTP_COOKIE",
     "PIP_EXTRA_INDEX_URL", "PIP_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_MINE_PASSWORD", "VLLM_AUTH"],
)  # fmt: skip
def test_secret_names(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    ["PATH", "PWD", "OLDPWD", "HOME", "HF_HOME", "HF_ENDPOINT", "TOKENIZERS_PARALLELISM", "PYTHONPATH", "KEYBOARD",
     "HIP_VISIBLE_DEVICES", "LD_LIBRARY_PATH", "QUARK_LOG_LEVEL", "XAUTHORITY", "MONKEY", "BYPASS", "COMPASS", "PATCH"],
)  # fmt: skip
def test_ordinary_names(name: str) -> None:
    assert not is_secret_name(name)


def test_environment_values_are_shown_without_their_secrets() -> None:
    """I-15: an extra index is set or unset, whatever it holds."""
    env = {"HF_TOKEN": "x", "HTTPS_PROXY": "http://u:S3CRET@proxy:80", "PATH": "/bin"}
    names = ["HF_TOKEN", "HTTPS_PROXY", "PATH", "PIP_EXTRA_INDEX_URL", "LANG"]
    assert redact_env(env, names) == {
        "HF_TOKEN": "set",
        "HTTPS_PROXY": "http://***@proxy:80",
        "PATH": "/bin",
        "PIP_EXTRA_INDEX_URL": "unset",
        "LANG": None,
    }
