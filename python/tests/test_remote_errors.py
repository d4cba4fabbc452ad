"""Files of URLs: what is said of those that are not there or not installed, and S3 by moto's server."""
import json
import os
import subprocess
import sys

import berth as tf
import numpy as np
import pytest
from berth import _remote, keras

fsspec = pytest.importorskip("fsspec", reason="needs the package fsspec")
from remote_files import Faulty, Proxy  # noqa: E402
from remote_fixtures import X, Y, _count, faulty, moto, names, net, no_faults, url  # noqa: E402, F401


# ---------------------------------------------------------------- what is said

def test_import_berth_does_not_import_fsspec():
    script = ("import berth as tf, sys; tf.train.Checkpoint(v=tf.Variable(1.0)).write('/dev/shm/none-of-these') ; "
              "tf.data, tf.keras, tf.summary, tf.io.gfile.exists('/'); "
              "assert not {'fsspec', 's3fs'} & set(sys.modules)")
    script = script.replace(".write('/dev/shm/none-of-these')", "")
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("scheme, extra", [("s3", "s3"), ("gs", "gcs"), ("az", "azure"), ("abfs", "azure")])
def test_what_is_not_installed_is_named(monkeypatch, scheme, extra):
    for package in ("fsspec", "fsspec.core"):
        monkeypatch.setitem(sys.modules, package, None)
    v = tf.Variable(1.0)
    for call in (lambda: tf.train.Checkpoint(v=v).save(f"{scheme}://b/run/ckpt"),
                 lambda: tf.train.latest_checkpoint(f"{scheme}://b/run"),
                 lambda: tf.io.gfile.exists(f"{scheme}://b/run")):
        with pytest.raises(ImportError, match=rf"pip install 'berth\[{extra}\]'"):
            call()


def test_what_is_not_there_is_named(url):
    v = tf.Variable(1.0)
    with pytest.raises(tf.errors.NotFoundError, match=f"{url}/ckpt-1"):
        tf.train.Checkpoint(v=v).restore(f"{url}/ckpt-1")
    with pytest.raises(tf.errors.NotFoundError, match="no complete checkpoint"):
        tf.train.list_variables(url)
    with pytest.raises(tf.errors.NotFoundError, match=f"{url}/none.txt"):
        list(tf.data.TextLineDataset(f"{url}/none.txt"))
    with pytest.raises(tf.errors.NotFoundError, match="no file matches"):
        tf.data.Dataset.list_files(f"{url}/*.none")
    with pytest.raises(tf.errors.NotFoundError, match=f"{url}/m.keras"):
        keras.models.load_model(f"{url}/m.keras")
    assert tf.train.latest_checkpoint(url) is None


def test_what_takes_no_url_says_so(faulty):
    import pathlib
    for call in (lambda: tf.data.Dataset.range(2).snapshot(faulty), lambda: list(tf.data.Dataset.range(2).cache(faulty)),
                 lambda: tf.io.write_file(f"{faulty}/x", "x")):
        with pytest.raises(tf.errors.InvalidArgumentError, match="is a URL; C.. reads and writes mounted paths"):
            call()
    with pytest.raises(tf.errors.InvalidArgumentError, match="not read by URL"):
        keras.utils.image_dataset_from_directory(faulty)
    with pytest.raises(ValueError, match="lost a slash"):
        tf.train.latest_checkpoint(pathlib.Path("s3://bucket/run"))
    with pytest.raises(tf.errors.InvalidArgumentError, match="scheme"):
        tf.train.latest_checkpoint("nonesuch://bucket/run")
    with pytest.raises(tf.errors.InvalidArgumentError, match="names no file"):
        tf.train.Checkpoint(v=tf.Variable(1.0)).save("faulty://ckpt")


def test_errors_name_the_url_and_not_the_copy(faulty):
    path = tf.train.Checkpoint(v=tf.Variable([1.0, 2.0])).write(f"{faulty}/one")
    with pytest.raises(tf.errors.OpError) as error:
        tf.train.Checkpoint(v=tf.Variable([1.0])).read(path)
    assert "berth-urls-" not in str(error.value)
    manifest = os.path.join(os.environ["FAULTY_ROOT"], faulty[len("faulty://"):], "one.json")
    with open(manifest) as file:
        kept = json.load(file)
    kept["save_counter"] += 1
    with open(manifest, "w") as file:
        json.dump(kept, file)
    with pytest.raises(tf.errors.DataLossError, match=f"{faulty}/one.json"):
        tf.train.Checkpoint(v=tf.Variable([1.0, 2.0])).read(path)


# ---------------------------------------------------------------- S3

def test_a_cut_connection_is_tried_again(moto, monkeypatch):
    proxy = Proxy(moto.port)
    import s3fs
    fs = s3fs.S3FileSystem(endpoint_url=f"http://127.0.0.1:{proxy.port}", skip_instance_cache=True,
                           config_kwargs={"retries": {"max_attempts": 1}})
    fs.retries = 1
    monkeypatch.setattr(_remote, "filesystem", lambda url: (fs, url.removeprefix("s3://")))
    url, v = f"s3://bucket/cut-{next(_count)}", tf.Variable(np.arange(1 << 20, dtype="float32"))
    proxy.cut_after, proxy.cuts = 1 << 20, 3
    checkpoint = tf.train.Checkpoint(v=v)
    path = checkpoint.save(f"{url}/ckpt")
    checkpoint.sync()
    assert proxy.cuts == 0
    v.assign_add(v)
    checkpoint.restore(path).assert_consumed()
    assert v.numpy()[-1] == (1 << 20) - 1
    # And one that stays cut is an error with what was tried.
    proxy.cuts = 1 << 30
    monkeypatch.setattr(_remote, "TRIES", 2)
    checkpoint.save(f"{url}/ckpt")
    with pytest.raises(tf.errors.UnavailableError, match="tried 2 times"):
        checkpoint.sync()
    proxy.cuts = 0
    assert tf.train.latest_checkpoint(url) == path
    proxy.close()


def test_errors_of_the_server_are_tried_again(moto, monkeypatch):
    proxy = Proxy(moto.port)
    proxy.errors = 6
    import s3fs
    fs = s3fs.S3FileSystem(endpoint_url=f"http://127.0.0.1:{proxy.port}", skip_instance_cache=True,
                           config_kwargs={"retries": {"max_attempts": 1}})
    fs.retries = 1
    monkeypatch.setattr(_remote, "filesystem", lambda url: (fs, url.removeprefix("s3://")))
    v = tf.Variable([1.0, 2.0])
    checkpoint = tf.train.Checkpoint(v=v)
    path = checkpoint.save(f"s3://bucket/500-{next(_count)}/ckpt")
    checkpoint.sync()
    assert proxy.errors == 0
    v.assign([0.0, 0.0])
    checkpoint.restore(path).assert_consumed()
    assert v.numpy().tolist() == [1.0, 2.0]
    proxy.close()


def test_a_slow_server_is_waited_for(moto, monkeypatch):
    proxy = Proxy(moto.port)
    proxy.pause_s = 0.02
    import s3fs
    fs = s3fs.S3FileSystem(endpoint_url=f"http://127.0.0.1:{proxy.port}", skip_instance_cache=True)
    monkeypatch.setattr(_remote, "filesystem", lambda url: (fs, url.removeprefix("s3://")))
    url = f"s3://bucket/slow-{next(_count)}"
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(v=tf.Variable(np.ones(100000, "float32"))), url, max_to_keep=1)
    manager.save()
    manager.save()
    manager.sync()
    assert moto.names(url.removeprefix("s3://bucket/")) == ["ckpt-2.json", "ckpt-2.safetensors"]
    proxy.close()


def test_large_values_go_up_in_parts_and_cut_parts_are_ended(moto, monkeypatch):
    import s3fs
    monkeypatch.setattr(s3fs.core, "calculate_chunksize", lambda size, chunksize=None: 5 << 20)
    folder = f"parts-{next(_count)}"
    lost = moto.client.create_multipart_upload(Bucket="bucket", Key=f"{folder}/ckpt-1.safetensors")
    other = moto.client.create_multipart_upload(Bucket="bucket", Key=f"{folder}/somebody-elses")
    v = tf.Variable(np.arange(3 << 20, dtype="float32"))
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(v=v), f"s3://bucket/{folder}")
    path = manager.save()
    manager.sync()
    tag = moto.client.head_object(Bucket="bucket", Key=f"{folder}/ckpt-1.safetensors")["ETag"]
    assert tag.strip('"').endswith("-3")  # of three parts
    left = {u["UploadId"] for u in moto.client.list_multipart_uploads(Bucket="bucket").get("Uploads", [])}
    assert lost["UploadId"] not in left and other["UploadId"] in left
    assert float(tf.train.load_variable(path, "v")[-1]) == (3 << 20) - 1
