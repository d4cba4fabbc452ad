"""A table of words that lives on parameter servers, of which a step moves the rows that it needs.

    berth launch --workers 2 --ps 2 -- python -m berth --own-keras parameter_server.py

One script for all tasks: workers and servers serve in the constructor of the strategy until the chief is done. With
tf.distribute.Server(...).join() in those tasks, as TensorFlow wants it, it is the same.
"""
import tensorflow as tf

WORDS, WIDTH, LENGTH = 20_000, 16, 8


def sentences(context):
    """Sentences of word numbers; the label says whether word 0 to 99 is in one."""
    def sentence(i):
        words = (i * 7919 + tf.range(LENGTH, dtype=tf.int64) * 104729) % WORDS
        rare = tf.where(i % 2 < 1, words % 100, words)
        return rare, tf.cast(tf.reduce_any(rare < 100), tf.float32)

    return tf.data.Dataset.range(4096).shard(context.num_input_pipelines, context.input_pipeline_id).map(
        sentence).batch(64).repeat()


def main():
    strategy = tf.distribute.ParameterServerStrategy(
        tf.distribute.cluster_resolver.TFConfigClusterResolver(),
        variable_partitioner=tf.distribute.experimental.partitioners.MinSizePartitioner(max_shards=2))
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        table = tf.Variable(tf.random.normal([WORDS, WIDTH]) * 0.05, name="words")
        weight = tf.Variable(tf.random.normal([WIDTH, 1]) * 0.3, name="weight")
        adam = tf.keras.optimizers.Adam(0.02)

    @tf.function
    def step(iterator):
        words, label = next(iterator)
        with tf.GradientTape() as tape:
            rows = tf.reduce_mean(tf.gather(table, words), axis=1)
            logits = tf.reshape(tf.matmul(rows, weight), [-1])
            loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=label, logits=logits))
        adam.apply_gradients(zip(tape.gradient(loss, [table, weight]), [table, weight]))
        return loss

    batches = iter(coordinator.create_per_worker_dataset(lambda: strategy.distribute_datasets_from_function(sentences)))
    print(strategy)
    for epoch in range(3):
        losses = [coordinator.schedule(step, args=(batches,)) for _ in range(64)]
        coordinator.join()
        print(f"epoch {epoch + 1}: loss {losses[-1].fetch():.3f}")
    print("shards of words:", strategy.servers_of(table))


if __name__ == "__main__":
    main()
