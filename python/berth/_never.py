"""Names of TensorFlow that Berth will not have, and why (docs/python-names.md)."""

# Names that will not come, by the first rule that fits, and why.
NEVER = [
    ("tf.feature_column", "columns of estimators: Keras' preprocessing layers take their place"),
    ("tf.estimator", "gone from TensorFlow itself"),
    ("tf.compat", "version 1"),
    ("tf.raw_ops", "ops have one form"),
    ("tf.lite", "another run-time"),
    ("tf.tpu", "no TPUs"),
    ("tf.distribute.TPUStrategy", "no TPUs"),
    ("tf.distribute.experimental.TPUStrategy", "no TPUs"),
    ("tf.distribute.cluster_resolver.TPUClusterResolver", "no TPUs"),
    ("tf.distribute.cluster_resolver.GCEClusterResolver", "addresses of instance groups are Google's API: TF_CONFIG or "
     "BERTH_HOSTS say them (docs/cluster.md)"),
    ("tf.distribute.cluster_resolver.KubernetesClusterResolver", "it asks Kubernetes for pods, whose addresses change: "
     "TF_CONFIG or BERTH_HOSTS with a headless Service (docs/cluster.md)"),
    ("tf.distribute.cluster_resolver.KubernetesExecutableLocation", "as KubernetesClusterResolver"),
    ("tf.distribute.coordinator.experimental_get_current_worker_index", "a scheduled function must not depend on which "
     "worker runs it"),
    ("tf.distribute.Server.create_local_server", "sessions of version 1 connected to it: functions run in this process, and "
     "Servers of this process make a cluster to try things with"),
    ("tf.train.Server", "version 1: tf.distribute.Server"),
    ("tf.train.ServerDef", "protocol buffers of TensorFlow's servers: tf.train.ClusterSpec, job_name and task_index say it"),
    ("tf.train.ClusterDef", "protocol buffers of TensorFlow's servers: tf.train.ClusterSpec's as_dict() has the same"),
    ("tf.train.JobDef", "protocol buffers of TensorFlow's servers: tf.train.ClusterSpec's as_dict() has the same"),
    ("tf.distribute.experimental.rpc", "parts of a program talk through strategies"),
    ("tf.xla", "there is no XLA behind Berth; its plans are compiled by itself"),
    ("tf.mlir", "there is no MLIR behind Berth"),
    ("tf.quantization", "of TensorFlow Lite"),
    ("tf.dtensor", "strategies and plans place and split"),
    ("tf.experimental.dtensor", "strategies and plans place and split"),
    ("tf.experimental.tensorrt", "another run-time"),
    ("tf.tools", "tools of TensorFlow's own build"),
    ("tf.test", "test cases of TensorFlow's own"),
    ("tf.queue", "version 1: tf.data"),
    ("tf.graph_util", "version 1"),
    ("tf.Graph", "version 1: tf.function"),
    ("tf.Operation", "version 1: tf.function"),
    ("tf.no_gradient", "version 1"),
    ("tf.sysconfig", "flags for building against TensorFlow"),
    ("tf.data.experimental.service", "a service of its own"),
    ("keras.src", "Keras' own parts"),
    ("keras.tree", "structures are flattened inside"),
    ("keras.legacy", "older forms"),
    ("keras.quantizers", "of Keras' quantised layers"),
    ("keras.export", "another run-time"),
    ("keras.distillation", "a recipe, not an engine's part"),
]
