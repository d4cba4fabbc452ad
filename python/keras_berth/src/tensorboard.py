"""What keras.callbacks.TensorBoard(profile_batch=...) calls: a recording, and the batches in it."""
import berth as tf


def start_trace(logdir):
    """Records; stop_trace() writes where TensorBoard's profile plug-in looks."""
    tf.profiler.experimental.start(logdir)


def stop_trace(save):
    """Ends the recording."""
    tf.profiler.experimental.stop(save=save)


def start_batch_trace(batch):
    """A step in the recording, by the name that XProf knows steps by."""
    trace = tf.profiler.experimental.Trace("train", step_num=batch)
    trace.__enter__()
    return trace


def stop_batch_trace(batch_trace_context):
    """Its end."""
    batch_trace_context.__exit__(None, None, None)
