"""Shows that a bundle has what its check needs, or is refused: on a build that pretends."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile

from gpu_check.selftest_calls import ROOT, program

# What the library says of the plug-ins beside it: those with a text it refuses.
OPENS = """
home = pathlib.Path(sys.argv[0]).resolve().parents[1]
assert os.environ["LD_LIBRARY_PATH"] == str(home / "lib"), "it would open another libberth"
print(json.dumps({"plugins": [
    {"name": f.stem, "path": str(f), "opened": not f.read_text(), "why": f.read_text()}
    for f in sorted((home / "lib").glob("libberth_*.so")) if "cudnn" not in f.name]}))
"""


class Bundles:
    """tools/gpu-bundle on a build that pretends."""

    def __init__(self, folder):
        self.build, self.out = folder / "build", folder / "bundle"
        warm = """
home = pathlib.Path(os.environ.get("BERTH_CACHE_DIR", "/nowhere"))
if not os.environ.get("PRETENDED_NONE"):
    (home / "cuda").mkdir(parents=True, exist_ok=True)
    (home / "other").mkdir(exist_ok=True)
    of_card = os.environ["BERTH_FAKE_CUDA"].rpartition("=")[2]
    (home / "cuda" / f"{of_card}_{pathlib.Path(sys.argv[0]).name}_{of('--model')}").write_text("")
if os.environ.get("PRETENDED_CRASH") == of("--model") != "":
    os.kill(os.getpid(), 11)
"""
        for name in ("berth", "device_suite", "conformance", "conformance_strategy",
                     "fixtures_test", "digits", "bench_gpu"):
            program(self.build / "bin" / name, OPENS if name == "berth" else warm)
        self.library("libberth.so.0")
        self.library("libberth_cuda.so")
        program(folder / "tools/ldd", "")  # and nothing else, such as `strip`
        self.environment = {**os.environ, "PRETENDED": str(folder / "noted"),
                            "PATH": str(folder / "tools")}

    def library(self, name, text=""):
        (self.build / "lib").mkdir(exist_ok=True)
        (self.build / "lib" / name).write_text(text, encoding="utf-8")

    def cudnn(self, version):
        """What the CUDA plug-in opens, of that version of their interface."""
        cc = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
        assert cc, "there is no C compiler"
        source = self.build / "cudnn.c"
        source.write_text(f"const int berth_cudnn_api[64] = {{{version}}};", encoding="utf-8")
        subprocess.run([cc, "-shared", "-fPIC", source, "-o",
                        self.build / "lib/libberth_cudnn.so"], check=True)

    def make(self, *arguments, **variables):
        """What it wrote as an error, or the names in the bundle and what it warned of."""
        done = subprocess.run([sys.executable, ROOT / "tools/gpu-bundle", "--build", self.build,
                               "--out", self.out, "--preset", "0", *arguments], check=False,
                              capture_output=True, text=True,
                              env={**self.environment, **variables})
        self.warned = done.stderr
        if done.returncode != 0:
            return done.stderr
        with tarfile.open(self.out / "payload.tar.xz") as tar:
            return tar.getnames()


def main(folder):
    """What is refused, what is carried, and for which cards kernels are compiled."""
    if not (ROOT / "tools/gpu-bundle").exists():
        return  # in a bundle
    b = Bundles(folder)
    assert "has no libberth_cudnn.so" in b.make()
    assert "lib/libberth_cuda.so" in b.make("--without-cudnn")
    api = (ROOT / "src/backends/cudnn/cudnn_api.h").read_text(encoding="utf-8")
    b.cudnn(re.search(r"define BERTH_CUDNN_API_VERSION (\d+)", api).group(1))
    carried = b.make("--warm", "80,90")
    for name in ("bin/berth", "lib/libberth_cudnn.so", *(
            f"cache/cuda/{card}_{of}" for card in (80, 90) for of in
            ("conformance_", "bench_gpu_gpt2", "bench_gpu_resnet50", "bench_gpu_mlp"))):
        assert name in carried, (name, carried)
    assert not [n for n in carried if "other" in n], carried
    assert (b.out / "tools/gpu-check").exists() and (b.out / "bench/gpu_table.py").exists()
    assert "no kernel was compiled" in b.make("--warm", "90", PRETENDED_NONE="1")
    assert "bin/berth" in b.make("--warm", "90", PRETENDED_CRASH="gpt2")
    assert "--model gpt2" in b.warned and "ended by signal 11" in b.warned, b.warned
    assert b.warned.count("signal") == 1, b.warned
    big = b.build / "bin/digits"
    big.write_bytes(os.urandom(2 << 20))
    assert "more than 1;" in b.make("--limit", "1") and not b.out.exists()
    assert '"--limit", type=float, default=45' in (ROOT / "tools/gpu-bundle").read_text()
    stale_plugins(b)
    preset()


def stale_plugins(b):
    """Those of another libberth are refused by name, with what to do; nothing is left."""
    for name, text in (("libberth_opencl.so", "it was built for another libberth (build id a, "
                        "this one is b)"), ("libberth_cuda.so", "undefined symbol: f")):
        program(b.build / "bin/backends_opencl_test", "")
        b.library(name, text)
        said = b.make()
        for word in (f"lib/{name} is refused", text, f"--build {b.build} --target gpu_bundle",
                     "remove the file"):
            assert word in said, (word, said)
        assert not (b.out / "payload.tar.xz").exists()
        b.library(name)
    b.cudnn(1234)
    said = b.make()
    assert "libberth_cudnn.so is of another version" in said and "1234, expected" in said, said
    b.library("libberth_cudnn.so", "no library")
    assert "libberth_cudnn.so cannot be opened" in b.make()
    program(b.build / "bin/berth", "sys.exit('no such symbol')")
    assert "`berth devices`" in b.make() and "no such symbol" in b.make()


def preset():
    """It has cuDNN, makes the bundle, and not where it is built."""
    presets = json.loads((ROOT / "CMakePresets.json").read_text(encoding="utf-8"))
    made = {p["name"]: p for p in presets["configurePresets"]}
    target = {p["name"]: p for p in presets["buildPresets"]}["gpu-bundle"]["targets"]
    of_bundle = made["gpu-bundle"]
    assert of_bundle["cacheVariables"]["BERTH_CUDNN"] == "ON" and target == "gpu_bundle", target
    folder = of_bundle.get("binaryDir", made["base"]["binaryDir"]).replace(
        "${sourceDir}", str(ROOT)).replace("${presetName}", "gpu-bundle")
    out = re.search(r'"--out".*default=ROOT / "(.*)"', (ROOT / "tools/gpu-bundle").read_text())
    assert pathlib.Path(folder) != ROOT / out.group(1), f"{folder} is built in and written to"
    text = (ROOT / "docs/gpu.md").read_text(encoding="utf-8")
    assert "--preset gpu-bundle" in text, "the preset is not described"
