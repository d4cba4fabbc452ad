"""keras.utils: data sets of folders of pictures and of texts."""
from berth import _core, _remote
from berth._structure import LEAF
from berth.data import Dataset


def image_dataset_from_directory(directory, labels="inferred", label_mode="int", class_names=None, color_mode="rgb",
                                 batch_size=32, image_size=(256, 256), shuffle=True, seed=None,
                                 validation_split=None, subset=None, interpolation="bilinear", follow_links=False,
                                 crop_to_aspect_ratio=False, pad_to_aspect_ratio=False, data_format=None,
                                 verbose=True):
    """Batches of .jpg and .png files, float32 [n, *image_size, channels] from 0 to 255, with the numbers of their folders.

    label_mode: "int" [n], "binary" and "categorical" float32 [n, 1 or classes], None: pictures alone.
    subset: "training", "validation" or "both", with validation_split the share of the latter. NotFoundError
    of a folder without pictures.
    """
    if data_format not in (None, "channels_last"):
        raise ValueError(f"image_dataset_from_directory: data_format is {data_format!r}; expected 'channels_last'")
    return _subsets(_core.images_of_folder, directory, subset, verbose, {
        **_common(labels, label_mode, class_names, batch_size, shuffle, seed, validation_split, follow_links),
        "color_mode": color_mode, "image_size": tuple(image_size), "interpolation": interpolation,
        "crop_to_aspect_ratio": crop_to_aspect_ratio, "pad_to_aspect_ratio": pad_to_aspect_ratio})


def text_dataset_from_directory(directory, labels="inferred", label_mode="int", class_names=None, batch_size=32,
                                max_length=None, shuffle=True, seed=None, validation_split=None, subset=None,
                                follow_links=False, verbose=True):
    """Batches of .txt files, strings [n], with the numbers of their folders; see image_dataset_from_directory()."""
    return _subsets(_core.texts_of_folder, directory, subset, verbose, {
        **_common(labels, label_mode, class_names, batch_size, shuffle, seed, validation_split, follow_links),
        "max_length": max_length})


def _common(labels, label_mode, class_names, batch_size, shuffle, seed, validation_split, follow_links):
    if labels not in ("inferred", None):
        raise NotImplementedError("labels by a list are not there yet; expected 'inferred' or None")
    return {"labels": labels or "", "label_mode": label_mode if label_mode and labels else "",
            "class_names": class_names, "batch_size": batch_size or 0, "shuffle": shuffle, "seed": seed,
            "validation_split": validation_split, "follow_links": follow_links}


def _subsets(make, directory, subset, verbose, options):
    if subset == "both":
        return tuple(_subsets(make, directory, part, verbose, options) for part in ("training", "validation"))
    directory = _remote.plain(directory)
    if _remote.is_url(directory):
        raise _core.InvalidArgumentError(f"{directory}: folders of pictures and texts are not read by URL; mount the bucket, "
                                         "or map tf.io.read_file over tf.data.Dataset.list_files(URL)")
    handle, class_names, paths = make(str(directory), {**options, "subset": subset or ""})
    made = Dataset(handle, (LEAF, LEAF) if options["label_mode"] else LEAF)
    made.class_names, made.file_paths = list(class_names), list(paths)
    if verbose:
        print(f"Found {len(paths)} files" + (f" belonging to {len(class_names)} classes." if class_names else "."))
    return made
