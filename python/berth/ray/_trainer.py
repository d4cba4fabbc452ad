"""The trainer: Ray Train's DataParallelTrainer with Berth's backend."""
from ray.train import DataConfig, RunConfig, ScalingConfig
from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer

from berth import _ray_plan as plan
from berth.ray import _state
from berth.ray._backend import BerthConfig
from berth.ray._elastic import Elastic


class BerthTrainer(DataParallelTrainer):
    """Runs a training function on the workers of a Ray cluster, which train one model together.

    In the function `tf.distribute.MultiWorkerMirroredStrategy()` (or, with strategy="parameter-server",
    `tf.distribute.ParameterServerStrategy()`) finds its cluster by itself, for models of tf.keras and of the package Keras
    on Berth. fit() returns Ray's Result, with `placements` (reports by task) and `traces` (files) beside it, or raises
    ray.train.TrainingFailedError.

    train_loop_per_worker: a function of no argument or of train_loop_config.
    scaling_config: ray.train.ScalingConfig; num_workers=(1, 4) lets Ray change the size of the group while it trains.
    run_config: ray.train.RunConfig; failure_config=FailureConfig(max_failures=n) replaces lost workers, n times.
    datasets: by name, for ray.train.get_dataset_shard(); each row goes to one worker. Under parameter servers the chief
    reads, so every worker that asks gets all rows.
    strategy, parameter_servers, resources_per_server, devices, cores, trace: see BerthConfig.
    Others are those of DataParallelTrainer. Raises ValueError for what cannot work together.
    """

    def __init__(self, train_loop_per_worker, *, train_loop_config=None, scaling_config=None, run_config=None, datasets=None,
                 dataset_config=None, strategy="multi-worker", parameter_servers=None, resources_per_server=None,
                 devices=None, cores="even", trace=False, **options):
        for name, value, kind in (("scaling_config", scaling_config, ScalingConfig), ("run_config", run_config, RunConfig)):
            if value is not None and not isinstance(value, kind):
                raise TypeError(f"BerthTrainer: {name} is a {type(value).__name__}; expected a ray.train.{kind.__name__}")
        scaling_config = scaling_config or ScalingConfig(num_workers=1 if strategy == "multi-worker" else 2)
        least = scaling_config.min_workers
        plan.check(strategy, parameter_servers, least)
        if least < 1:
            raise ValueError("BerthTrainer: num_workers=0 runs the function in this process, without Ray; call it instead")
        for name in ("use_tpu", "topology"):
            if getattr(scaling_config, name):
                raise ValueError(f"BerthTrainer: ScalingConfig({name}={getattr(scaling_config, name)!r}) asks for TPUs, for "
                                 "which Berth has no devices; leave it out")
        if "backend_config" in options:
            raise TypeError("BerthTrainer makes its backend_config; give one to DataParallelTrainer: "
                            "backend_config=berth.ray.BerthConfig(...)")
        if strategy == "multi-worker" and resources_per_server is not None:
            raise ValueError("BerthTrainer: resources_per_server has no effect with strategy='multi-worker'; leave it out")
        config = BerthConfig(strategy=strategy, parameter_servers=parameter_servers or 1, devices=devices, cores=cores,
                             trace=bool(trace), **({} if resources_per_server is None
                                                   else {"resources_per_server": dict(resources_per_server)}))
        if dataset_config is None and strategy == "parameter-server":
            dataset_config = DataConfig(datasets_to_split=[])
        super().__init__(train_loop_per_worker, train_loop_config=train_loop_config, backend_config=config,
                         scaling_config=scaling_config, run_config=run_config, datasets=datasets,
                         dataset_config=dataset_config, **options)

    def _initialize_and_run_controller(self, **how):
        if self.scaling_config.elasticity_enabled:
            how["scaling_policy"] = Elastic(self.scaling_config)
        return super()._initialize_and_run_controller(**how)

    def fit(self):
        """Trains, and returns ray.train.Result with `placements` and `traces`."""
        result = super().fit()
        result.placements, result.traces = _state.placements(result), _state.traces(result)
        return result
