"""`Config`: base of the model configurations, with the field names of Hugging Face's ``config.json``.

    config = LlamaConfig(hidden_size=4096, num_attention_heads=32, num_key_value_heads=8)
    config = LlamaConfig.from_dict(json.loads(text), "llama/config.json")
    text = json.dumps(config.to_dict())

Every field of a file is one of three things. It is a field of the dataclass; or it has no effect on the computation
(who made the file, which token ends a text) and is kept in `other`, to be written again; or it is unknown,
and refused, since a model that leaves out a field computes something else without a word.
"""

from __future__ import annotations

import dataclasses
import numbers
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from sbpjax.errors import ConfigError, nearest
from sbpjax.utils.host import explain_arguments

# Of any family: tokens with a meaning, options of generation, who wrote the file and in which dtype.
OTHER = frozenset(
    """_name_or_path architectures auto_map bos_token_id eos_token_id pad_token_id sep_token_id cls_token_id
    decoder_start_token_id dtype torch_dtype transformers_version use_cache output_attentions output_hidden_states
    return_dict task_specific_params id2label label2id problem_type chunk_size_feed_forward gradient_checkpointing
    attn_implementation _attn_implementation_autoset finetuning_task tokenizer_class pretraining_tp""".split()
)


MOST_LAYERS = 10_000


def _fits(name: str, kind: str, value: Any) -> tuple[bool, str]:
    """Return whether a value is of a kind and within the bounds of a field of this name, and which these are."""
    is_int = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if kind == "int":
        least = 0 if name.endswith("token_id") or "layers" in name or name in ("n_layer", "num_labels") else 1
        most = MOST_LAYERS if "layer" in name else 2**31 - 1
        return is_int and least <= int(value) <= most, f"an integer from {least} to {most:,}"
    if kind == "float":
        is_number = (is_int or isinstance(value, numbers.Real)) and not isinstance(value, bool)
        most = 1.0 if "drop" in name else 1e30
        return is_number and 0 <= value <= most, f"a number from 0 to {most:g}"  # type: ignore[operator]
    known = {"bool": (bool, "True or False"), "str": (str, "a text"), "Mapping": (Mapping, "a dict"),
             "tuple": ((tuple, list), "a list")}  # fmt: skip
    kinds, rule = known.get(kind, (object, ""))
    return isinstance(value, kinds), rule


@explain_arguments
@dataclass(frozen=True, kw_only=True)
class Config:
    """Base of the configurations of all families.

    Attributes:
        model_type: the family, as Hugging Face calls it.
        other: fields of the file without effect on the computation.
    """

    model_type: str = ""
    other: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    # Of a family: fields that go to `other` beside those of all, and fields that may have only these values.
    OTHER: ClassVar[Collection[str]] = ()
    ONLY: ClassVar[Mapping[str, Collection[Any]]] = {}
    REQUIRED: ClassVar[Collection[str]] = ()

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], source: str = "a dict") -> Self:
        """Return the configuration of a file's fields.

        Args:
            values: the fields.
            source: where they are from, for errors.

        Raises:
            ConfigError: a field is missing, unknown, or has a value that is not built.

        Example:
            >>> from sbpjax.models.gpt2 import GPT2Config
            >>> given = {"vocab_size": 50257, "n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 32}
            >>> GPT2Config.from_dict(given).n_embd
            64
        """
        operation = f"reading {source}"
        own = {f.name for f in dataclasses.fields(cls)} - {"other"}
        try:
            values = cls.rename(dict(values))
        except (TypeError, ValueError, AttributeError, KeyError) as error:
            seen, rule = f"{type(error).__name__}: {error}", "the fields are those of config.json"
            raise ConfigError(operation, seen, rule, "the file as it was written") from None
        missing = sorted(set(cls.REQUIRED) - set(values))
        if missing:
            rule = f"{cls.__name__} cannot be without {', '.join(sorted(cls.REQUIRED))}"
            raise ConfigError(operation, f"no {', '.join(missing)}", rule, f'add "{missing[0]}" to it')
        given, other = {}, {}
        for name, value in values.items():
            if name in own:
                given[name] = tuple(value) if isinstance(value, list) else value
            elif name in cls.ONLY:
                if value not in cls.ONLY[name]:
                    built = " or ".join(repr(v) for v in cls.ONLY[name])
                    raise ConfigError(
                        operation, f"{name}={value!r}", f"{cls.__name__} knows {name}={built}", "another model"
                    )
                other[name] = value
            elif name in OTHER or name in cls.OTHER:
                other[name] = value
            else:
                near = nearest(name, own)
                kept = f"delete {name!r} from {source} if the model computes the same without it"
                fix = f"write {near!r}" if near else kept
                rule = f"a field that {cls.__name__} does not know may change the results of the model"
                raise ConfigError(operation, f"{name}={value!r}", rule, fix)
        cls.check_fields(given, operation)
        return cls(**given, other=other)

    def __post_init__(self) -> None:
        own = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name != "other"}
        self.check_fields(own, f"{type(self).__name__}(...)")

    @classmethod
    def check_fields(cls, values: Mapping[str, Any], operation: str) -> None:
        """Check fields by their annotations: sizes are above 0, probabilities from 0 to 1.

        Args:
            values: the fields that are given.
            operation: the call, for errors.

        Raises:
            ConfigError: one is of another kind, or out of its bounds.
        """
        kinds = {f.name: str(f.type) for f in dataclasses.fields(cls)}
        for name, value in values.items():
            first, _, rest = kinds.get(name, "Any").partition(" | ")
            if value is None and "None" in (first, *rest.split(" | ")):
                continue
            if rest not in ("", "None"):  # of several kinds: the family checks them
                continue
            fits, rule = _fits(name, first.partition("[")[0], value)
            if not fits:
                raise ConfigError(operation, f"{name}={value!r:.100}", f"{name} is {rule}", f"{name}=…, {rule}")

    @classmethod
    def rename(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of a file under today's names; families with older files define it."""
        return values

    def to_dict(self) -> dict[str, Any]:
        """Return the fields of ``config.json``."""
        own = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name != "other"}
        return dict(self.other) | {name: list(v) if isinstance(v, tuple) else v for name, v in own.items()}

    def refuse(self, seen: str, rule: str, fix: str) -> None:
        """Raise the error of a configuration that contradicts itself.

        Raises:
            ConfigError: always.
        """
        raise ConfigError(f"{type(self).__name__}(...)", seen, rule, fix)


@explain_arguments
@dataclass(frozen=True, kw_only=True)
class LabelledConfig(Config):
    """Base of the configurations of families with models that classify.

    Attributes:
        num_labels: classes of a classification; in the file the length of ``id2label``.
    """

    num_labels: int = 2

    @classmethod
    def rename(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Return the fields with the number of labels, which files have as the table of their names."""
        labels = values.get("id2label")
        if labels is not None:
            if values.setdefault("num_labels", len(labels)) != len(labels):  # changed by the caller
                del values["id2label"]
                values.pop("label2id", None)
        return values

    def to_dict(self) -> dict[str, Any]:
        """Return the fields of ``config.json``."""
        found = super().to_dict()
        count = found.pop("num_labels")
        if count != 2 and "id2label" not in found:
            names = [f"LABEL_{i}" for i in range(count)]
            found["id2label"] = {str(i): name for i, name in enumerate(names)}
            found["label2id"] = {name: i for i, name in enumerate(names)}
        return found
