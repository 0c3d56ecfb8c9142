"""Commands: every command has a row, and its help ends with an example and shows the defaults."""

import importlib
import re

import pytest

from sbpjax._core.runtime.commands import COMMANDS, command_parser, main


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_an_example_and_defaults(name, capsys):
    if name in ("train", "preprocess"):
        pytest.importorskip("omegaconf", reason="needs the extra `train`")
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    text = capsys.readouterr().out
    assert ended.value.code in (0, None) and text.startswith("usage: python -m sbpjax"), text
    assert re.search(r"\nexample:\n  python -m sbpjax\S* ?\S*", text), text
    assert COMMANDS[name].description in " ".join(text.split())


def test_example_of_the_launcher_parses():
    launch = importlib.import_module("sbpjax.distributed.launch")
    options = launch.parser().parse_args(COMMANDS["launch"].example.split())
    assert options.nproc_per_node == 2 and options.training_script == "train.py"


def test_default_is_shown_unless_the_text_states_it():
    parser = command_parser("sbpjax.cache")
    parser.add_argument("--size", type=int, default=7, help="megabytes")
    parser.add_argument("--folder", default="x", help="the folder; y by default")
    parser.add_argument("--force", action="store_true", help="no question")
    text = parser.format_help()
    assert "megabytes (default: 7)" in text and "(default: x)" not in text and "False" not in text


def test_unknown_command_ends_with_status_two(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["trian"])
    assert ended.value.code == 2 and "there is no command 'trian'" in capsys.readouterr().err


def test_version(capsys):
    main(["--version"])
    assert re.match(r"sbpjax \d+\.\d+\.\d+\n", capsys.readouterr().out)


def test_option_is_not_abbreviated(capsys):
    parser = command_parser("sbpjax.train")
    parser.add_argument("--resume", action="store_true")
    with pytest.raises(SystemExit):
        parser.parse_args(["--resum"])
    assert "unrecognized arguments: --resum" in capsys.readouterr().err
