"""The shipped YAML files, and checks of composed configurations."""

from pathlib import Path

import pytest

from klr_bench.config import locations as config_files
from klr_bench.config.datasets import label_column
from klr_bench.config.models import DataConfig, KernelConfig, all_keys
from klr_bench.config.splitting import Official, Share
from klr_bench.errors import KlrBenchError
from tests.config.composing import composed

CONFIGS = config_files.config_dir()


def stems(group: str) -> list[str]:
    return config_files.names(group, [CONFIGS])


@pytest.mark.parametrize("experiment", stems("experiment"))
def test_an_experiment_composes_and_validates(experiment: str) -> None:
    overrides = ["data.path=mine.csv"] if experiment in ("own_file", "stream_own") else []
    config = composed(f"experiment={experiment}", *overrides)
    assert config.name == experiment
    assert config.title
    assert list(config.datasets)
    assert set(config.sweep) <= set(config.algorithms)
    columns = [len(values) for lists in config.sweep.values() for values in lists.values()]
    assert min(columns, default=2) > 1, "a sweep of one value belongs into `algorithms`"


def test_every_algorithm_has_parameters_of_its_constructor_a_label_and_a_reference() -> None:
    algorithms = composed(f"algorithm=[{','.join(stems('algorithm'))}]", "dataset=digits").algorithms
    assert list(algorithms) == stems("algorithm")
    for stem, algorithm in algorithms.items():
        assert algorithm.label != stem, stem
        assert algorithm.reference, stem


@pytest.mark.parametrize("dataset", stems("dataset"))
def test_a_dataset_validates(dataset: str) -> None:
    overrides = ["algorithm=[perceptron]", "trace.points=0"]
    overrides += ["data.path=mine.csv"] if dataset in ("file", "stream") else []
    assert list(composed(f"dataset={dataset}", *overrides).datasets) == [dataset]


@pytest.mark.parametrize(("experiment", "dataset"), [("oskl_magic", "magic"), ("oskl_adult", "adult")])
def test_table_3_has_the_columns_and_grids_of_the_paper(experiment: str, dataset: str) -> None:
    config = composed(f"experiment={experiment}")
    radii = [1.0, 10.0, 100.0, 1e3, 1e4, 1e5]
    assert list(config.datasets) == [dataset]
    assert list(config.algorithms) == ["nc", "margin", "auxiliary", "pegasos", "oskl"]
    assert config.algorithms["nc"].label == "Baseline"
    for stem in ("nc", "margin", "auxiliary"):
        assert config.algorithms[stem].grid == {"R": radii, "eta": [0.01, 0.1, 1.0]}
    assert config.algorithms["oskl"].grid == {"R": radii}
    assert "eta" not in config.algorithms["oskl"].estimator
    assert config.algorithms["pegasos"].grid == {"lam": [10.0**power for power in range(-10, 0)]}
    assert config.algorithms["auxiliary"].estimator["aux_gamma"] == 2.0
    assert config.sweep == {"oskl": {"G": [1, 2, 4, 10]}, "pegasos": {"lam": [1e-4, "cv"], "project": [True, False]}}
    assert config.kernel == KernelConfig(kernel="rbf", percentile=20.0, multiple=1.0, gamma=None, degree=3.0, coef0=1.0)
    assert (config.repeats, config.selection.folds) == ({"magic": 30, "adult": 5}[dataset], 5)


def test_a_value_of_the_command_line_leaves_grid_and_sweep() -> None:
    given = ("oskl.estimator.G=2", "oskl.estimator.R=50", "nc.estimator.eta=1")
    config = composed(*(f"algorithms.{setting}" for setting in given))
    assert config.algorithms["oskl"].estimator["G"] == 2
    assert config.algorithms["oskl"].grid == {}
    assert "oskl" not in config.sweep
    assert list(config.algorithms["nc"].grid) == ["R"]
    plain = composed("sweep.oskl.G=[1,1.0,2,1]")
    assert list(plain.algorithms["nc"].grid) == ["R", "eta"]
    assert plain.sweep["oskl"] == {"G": [1, 2]}
    assert composed("algorithm=nc").sweep == {}


def test_the_users_own_file_becomes_a_spec() -> None:
    paths = ["dataset=file", "data.path=~/my data, 1.csv", "data.label=-1", "data.positive=+1"]
    config = composed(*paths, "data.test_size=0.3", "data.n_features=7", "data.format=csv")
    spec = config.datasets["file"]
    source = spec.source
    assert source.path == str(Path.home() / "my data, 1.csv")
    assert (source.label_column, spec.positive, source.n_features) == (-1, "+1", 7)
    assert (spec.split, source.file_format) == (Share(test_size=0.3, stratify=True), "csv")
    named = composed("dataset=file", "data.path=a", "data.label=class").datasets["file"]
    assert named.source.label_column == "class"
    places = {"04": "04", "4": 4, "-1": -1, "0": "0", "\u0664": "\u0664", 4: 4}
    assert {label: label_column(DataConfig(label=label)) for label in places} == places
    with_test = composed("dataset=file", "data.path=a", "data.test_path=b").datasets["file"]
    assert (with_test.source.test_path, with_test.split) == ("b", Official(official=True))


def test_the_mirror_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KLR_BENCH_MIRROR", "~/mirror")
    assert composed().data == DataConfig(mirror=str(Path.home() / "mirror"))
    assert composed("data.mirror=http://h/p").data.mirror == "http://h/p"
    assert composed("data.mirror=null").data.mirror is None
    monkeypatch.setenv("KLR_BENCH_MIRROR", "")
    assert composed().data.mirror is None


def test_parameters_of_parts_of_a_pipeline_may_be_in_a_grid() -> None:
    where = "algorithms.majority.estimator"
    chosen = ["algorithm=majority", f"~{where}.strategy", f"{where}._target_=tests.test_instantiate.ScaledSVC"]
    config = composed(*chosen, "algorithms.majority.grid={svc__C: [1, 10]}")
    assert config.algorithms["majority"].grid == {"svc__C": [1, 10]}
    with pytest.raises(KlrBenchError, match=r"unknown key 'algorithms\.majority\.grid\.svc_C'"):
        composed(*chosen, "algorithms.majority.grid={svc_C: [1, 10]}")
    with pytest.raises(KlrBenchError, match=r"unknown key 'algorithms\.majority\.grid\.a__c'"):
        composed(*chosen[:2], chosen[2].replace("ScaledSVC", "OddNames"), "algorithms.majority.grid={a__c: [1, 10]}")


REFUSED = [
    (["+foo=1"], r"unknown key 'foo'\. Known: against, algorithms, budget, data, .*trace\."),
    (["experiment=oskl_magic", "+left_out.magic.oskl={G: [3]}"], r"left_out\.magic\.oskl\.G: unknown value 3\. Know"),
    (["experiment=oskl_magic", "+left_out.magic.oskl={G: ['1']}"], r"left_out\.magic\.oskl\.G: unknown value '1'\. "),
    (
        ["selection.nested=false"],
        r"selection\.nested=false: expected folds for \w+, got none\. Set datasets\.\w+\.split\.folds\.",
    ),
    (["experiment=klr_figure1", "selection.folds=3"], r"selection\.folds=3: .*because selection\.nested is false\."),
    (["+algorithms.nc.selected_as={etaa: 1}"], r"unknown key 'algorithms\.nc\.selected_as\.etaa'\. Did you mean 'eta'"),
    (["+algorithms.nc.selected_as={eta: 1}"], r"nc\.selected_as\.eta and algorithms\.nc\.grid\.eta are both given\."),
    (
        ["algorithms.nc.grid=null", "+algorithms.nc.selected_as={eta: 1}"],
        r"selected_as: has no effect, .*no parameters",
    ),
    (["+against.log_loss_ratio={algorithm: osk1}"], r"unknown algorithm 'osk1'\. Did you mean 'oskl'\?"),
    (["+against.log_loss_ratio={algorithm: [nc]}"], r"algorithm: expected the name of an algorithm, got \['nc'\]"),
    (["dataset=[file]", "data.path=x.csv", "datasets.file.split=official"], r"split: expected keys and values such as"),
    (["+against.log_loss_ratio={G: 9}"], r"against\.log_loss_ratio\.G: unknown value 9\. Known: 1, "),
    (["metrics=[accuracy,log_loss_ratio]"], r"metrics: log_loss_ratio: expected against\.log_l"),
    (["repeats=abc"], r"repeats: expected a whole number, got 'abc'\."),
    (["parallel.address=tcp://host:8786"], r"parallel\.address=.*no effect, because the backend is joblib; add par"),
    (["parallel=dask", "parallel.address=h:1", "parallel.scheduler_file=f"], r"are both given; .* Leave one out\."),
    (["name=a/b"], r"name: expected a name: .*, got 'a/b'\."),
    (["kernel.percentile=0"], r"kernel\.percentile: expected above 0, at most 100, or null, got 0\."),
    (["kernel.gamma=0.5"], r"kernel\.gamma=0\.5 and .* both given.* add kernel\.percentile=null\."),
    (["kernel.percentile=null", "kernel.gamma=1", "kernel.multiple=3"], r"kernel\.multiple=3.* kernel\.percentile, w"),
    (["kernel.degree=2"], r"kernel\.degree=2\.0: has no effect, because it is a parameter of the kernel poly"),
    (["trace.points=0", "trace.spacing=log"], r"trace\.spacing=log: has no effect, because trace\.points=0"),
    (["algorithm=[sbcw]", "selection.folds=3"], r"selection\.folds=3: has no effect, because nothing is selected"),
    (["dataset=[adult]", "datasets.adult.split.test_size=0.3"], r"add datasets\.adult\.split\.official=null"),
    (["dataset=[mnist]", "datasets.mnist.positive=8"], r"datasets\.mnist\.positive=8: has no effect with multiclass"),
    (["dataset=[magic]", "datasets.magic.split={official: true, test_size: null}"], "there is no official test set"),
    (["datasets.digits.source=digitts"], r"datasets\.digits\.source: unknown source 'digitts'\. Known: a9a, "),
    (["experiment=[oskl_magic,oskl_adult]"], r"experiment: expected one name\. .* -m experiment="),
    (["dataset=[]"], r"no dataset is selected: .* Known: a9a, adult, .*moons"),
    (["datasets.magic.scale=null"], r"datasets\.magic\.scale is given, but dataset 'magic' is not selected\."),
    (["datasets.digits.scal=null"], r"unknown key 'datasets\.digits\.scal'\. Did you mean 'scale'\?"),
    (["~algorithms.nc.estimator"], r"~algorithms\.nc\.estimator: a selected algorithm needs this key.*~algorithms\.nc"),
    (["algorithms.oskl.estimator.delt=1"], r"unknown key 'algorithms\.oskl\.estimator\.delt'\. .*'delta'\?"),
    (["algorithms.oskl.estimator.R=true"], r"algorithms\.oskl\.estimator\.R: expected a number, got True"),
    (["algorithms.ogd.estimator.eta=2"], r"algorithms\.ogd\.estimator\.eta is given, but algorithm 'ogd' is not"),
    (["algorithms.oskl.grid.R=3"], r"algorithms\.oskl\.grid\.R: expected a list of values .*, got 3\."),
    (["algorithms.oskl.estimator._target_=klr_bench.OSK"], r"_target_: expected .*, got 'klr_bench\.OSK', which ca"),
    (["sweep.oskl.los=[logit]"], r"unknown key 'sweep\.oskl\.los'\. Did you mean 'loss'\?"),
    (["sweep.oskl.G=[true,1]"], r"sweep\.oskl\.G: expected a number, got True"),
    (["sweep.oskl.loss=['a\tb']"], r"sweep\.oskl\.loss\[0\]: expected printable text or .*, got 'a\\tb'"),
    (["sweep.oskl.G=[1,cv]"], r"sweep\.oskl\.G: .*'cv', but algorithms\.oskl\.grid\.G has no values to choose"),
    (["algorithm=nc", "sweep.oskl.G=[1,2]"], r"sweep\.oskl\.G is given, but algorithm 'oskl' is not selected"),
    (["algorithms.oskl.estimator.G=2", "sweep.oskl.G=[1,2]"], r"estimator\.G and sweep\.oskl\.G are both given"),
    (["data.path=a.csv"], r"data\.path= is given, but dataset=file is not selected\. Add experiment=own_file"),
    (["dataset=file"], r"dataset=file: expected data\.path=<your LIBSVM or CSV file>, got none\."),
    (["dataset=file", "data.path=a", "data.test_path=b", "data.test_size=0.5"], r"data\.test_size= are both given"),
]


@pytest.mark.parametrize(
    ("overrides", "message"), REFUSED, ids=lambda value: " ".join(value) if isinstance(value, list) else ""
)
def test_what_makes_no_sense_is_refused(overrides: list[str], message: str) -> None:
    with pytest.raises(KlrBenchError, match=message):
        composed(*overrides)


@pytest.mark.parametrize(
    "overrides",
    [
        ["experiment=budget_adult", "budget=50", "+left_out.adult.forgetron={budget: [50]}"],
        ["experiment=prototypes_questions", "sweep.ivm.max_import_vectors=[3]"],
    ],
)
def test_methods_are_left_out_of_a_changed_sweep(overrides: list[str]) -> None:
    composed(*overrides)


def test_the_runs_kernel_has_an_effect_on_what_a_file_declares() -> None:
    words = ["algorithm=fogd", "kernel.percentile=null", "kernel.gamma=2"]
    assert composed(*words).kernel.gamma == 2.0
    with pytest.raises(KlrBenchError, match="no learner of this run has a kernel"):
        composed(*words, "algorithms.fogd.kernel_parameters=[]")


def test_every_key_of_the_schema_stands_in_the_root_file() -> None:
    root = config_files.read(CONFIGS / "config.yaml")
    groups = {"parallel"}
    for key in all_keys():
        section, _, name = key.partition(".")
        if section not in groups:
            assert section in root, key
            assert not name or name in root[section], key


def test_configs_inside_the_package_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "site" / "klr_bench"
    package.mkdir(parents=True)
    monkeypatch.setattr(config_files, "__file__", str(package / "config" / "locations.py"))
    assert config_files.config_dir() == tmp_path / "site" / "configs"
    (package / "configs").mkdir()
    assert config_files.config_dir() == package / "configs"


def test_an_own_file_may_repeat_a_shipped_one_but_not_differ(tmp_path: Path) -> None:
    shipped = CONFIGS / "dataset" / "magic.yaml"
    path = tmp_path / "dataset" / "magic.yaml"
    path.parent.mkdir()
    path.write_bytes(shipped.read_bytes())
    config_files.check_own([CONFIGS, tmp_path])
    path.write_bytes(shipped.read_bytes() + b"\n")
    with pytest.raises(KlrBenchError) as refused:
        config_files.check_own([CONFIGS, tmp_path])
    assert str(path) in str(refused.value)
    assert str(shipped) in str(refused.value)


@pytest.mark.parametrize("header", ["", "# @package datasets.magic\n"])
def test_an_own_file_without_its_package_is_refused(tmp_path: Path, header: str) -> None:
    path = tmp_path / "dataset" / "mine.yaml"
    path.parent.mkdir()
    path.write_text(f"{header}label: Mine\nsource: magic\n")
    with pytest.raises(KlrBenchError, match=r"mine\.yaml: expected the first line to be '# @package datasets\.mine'"):
        config_files.check_own([CONFIGS, tmp_path])


def write_records(folder: Path, lines: list[str]) -> None:
    folder.mkdir(parents=True)
    header = "dataset,algorithm,variant,status,n_support"
    (folder / "records.csv").write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")


def test_budgets_come_from_the_records_of_another_experiment(tmp_path: Path) -> None:
    lines = [f'magic,oskl,"{{""G"": {G}}}",ok,{n}' for G, n in ((10, 400), (2, 1800), (10, 411), (2, 1801))]
    others = ["magic,nc,{},ok,15216", 'adult,oskl,"{""G"": 2}",ok,3000', 'magic,oskl,"{""G"": 2}",error,']
    write_records(tmp_path / "mine", [*lines, *others])
    config = composed("experiment=budget_magic", "budget=from:mine/oskl", f"results_dir={tmp_path}")
    assert config.sweep == {"forgetron": {"budget": [1800, 406]}, "bogdpp": {"budget": [1800, 406]}}
    config = composed("experiment=budget_magic", "budget=from:mine/nc", f"results_dir={tmp_path}")
    assert config.sweep["forgetron"]["budget"] == [15216]
    assert composed("experiment=budget_magic", "budget=50").sweep["bogdpp"] == {"budget": [50]}
    assert composed("experiment=budget_magic", "budget=[50,60]").sweep["bogdpp"] == {"budget": [50, 60]}


@pytest.mark.parametrize("n_support", ["abc", "-3"])
def test_damaged_records_lend_no_budgets(tmp_path: Path, n_support: str) -> None:
    write_records(tmp_path / "mine", ['magic,oskl,"{""G"": 2}",ok,400', f'magic,oskl,"{{""G"": 10}}",ok,{n_support}'])
    with pytest.raises(KlrBenchError, match=r"budget=from:mine/oskl: .*records\.csv: (n_support: )?expected"):
        composed("experiment=budget_magic", "budget=from:mine/oskl", f"results_dir={tmp_path}")


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["budget=from:none/oskl"], r"no records in .*none/records\.csv\. Run the experiment with: klr-bench run"),
        (["budget=from:mine/oskl", "dataset=[adult]"], r"of which fits on adult are finished; .* has oskl on magic\."),
        (["budget=from:mine"], r"expected from:<experiment>/<algorithm>, .*records\.csv has oskl on magic\."),
        (["budget=from:mine/oskl", "dataset=[magic,adult]"], r"expected exactly one data set, got magic, adult\."),
        (["budget=2.5"], r"budget: expected a list or text or a whole number, got 2\.5\."),
        (["budget=many"], r"sweep\.forgetron\.budget: expected a list of values such as \[1, 10\], got 'many'\."),
        (["experiment=oskl_magic", "budget=5"], r"budget: the experiment oskl_magic has no learners with a budget"),
    ],
)
def test_budgets_that_there_are_not(overrides: list[str], message: str, tmp_path: Path) -> None:
    write_records(tmp_path / "mine", ['magic,oskl,"{""G"": 2}",ok,1800'])
    experiment = [] if overrides[0].startswith("experiment=") else ["experiment=budget_magic"]
    with pytest.raises(KlrBenchError, match=message):
        composed(*experiment, *overrides, f"results_dir={tmp_path}")
