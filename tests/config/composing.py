"""Configurations composed by Hydra from arguments of ``klr-bench run``."""

from typing import Any, TypeVar

from hydra import compose, initialize_config_dir
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf, open_dict

from klr_bench.cli.arguments import prepare
from klr_bench.config import locations as config_files
from klr_bench.config.models import DatasetConfig, RunConfig
from klr_bench.config.resolve import validate
from klr_bench.parsing import Model

AnyModel = TypeVar("AnyModel", bound=Model)


def composed_config(*overrides: str) -> tuple[DictConfig, list[str]]:
    """Return the composed configuration and its arguments."""
    arguments = prepare(overrides).hydra
    with initialize_config_dir(str(config_files.config_dir()), version_base="1.3"):
        cfg = compose("config", arguments, return_hydra_config=True)
    HydraConfig.instance().set_config(cfg)
    with open_dict(cfg):
        del cfg["hydra"]
    return cfg, arguments


def altered(model: AnyModel, **values: Any) -> AnyModel:
    """Return a model with other values, which may be plain."""
    return type(model)(**dict(model) | values)


def dataset_of(entry: dict[str, Any]) -> DatasetConfig:
    """Return a data set of plain values; without a split it is split at random."""
    return DatasetConfig(**{"split": {"test_size": 0.2}} | entry)


def composed(*overrides: str) -> RunConfig:
    """Return the `RunConfig` of these arguments."""
    return validate(*composed_config(*overrides))


def composed_values(*overrides: str) -> dict[str, Any]:
    """Return plain values before they are checked."""
    plain = OmegaConf.to_container(composed_config(*overrides)[0], resolve=True)
    assert isinstance(plain, dict)
    return plain  # type: ignore[return-value]
