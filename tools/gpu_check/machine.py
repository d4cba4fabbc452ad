"""What this machine has: programs of the bundle, NVIDIA's libraries, drivers, Python."""
import glob
import json
import os
import pathlib
import platform
import re
import shutil
import sys

from gpu_check.run import run

SANITIZER_PLACES = ("/usr/local/cuda/bin", "/usr/local/cuda*/bin", "/opt/cuda/bin",
                    "/usr/local/cuda*/compute-sanitizer", "/opt/nvidia/compute-sanitizer*")


def package_folders():
    """Folders with libraries and tools of NVIDIA's Python packages, newest Python first."""
    roots = []
    for folder in [*os.environ.get("PATH", "").split(":"), os.path.dirname(sys.executable)]:
        python = pathlib.Path(folder) / "python3"
        if folder and python.exists():
            for prefix in (pathlib.Path(folder).parent, python.resolve().parent.parent):
                roots += glob.glob(f"{prefix}/lib/python3*/site-packages/nvidia")
                roots += glob.glob(f"{prefix}/lib/python3*/dist-packages/nvidia")
    return list(dict.fromkeys(roots))


def library_folders():
    """Where CUDA's libraries may be, for BERTH_CUDA_LIBRARIES."""
    found = [f for f in os.environ.get("BERTH_CUDA_LIBRARIES", "").split(":") if f]
    for root in package_folders():
        found += sorted(glob.glob(f"{root}/*/lib"))
    found += [f for f in ("/usr/local/cuda/lib64", "/usr/local/cuda/lib") if os.path.isdir(f)]
    return list(dict.fromkeys(found))


def find_tool(name, places=SANITIZER_PLACES):
    """A tool of the toolkit: on the PATH, in its usual places, in Python packages; or None."""
    found = shutil.which(name)
    if found:
        return found
    folders = [f for place in places for f in sorted(glob.glob(place), reverse=True)]
    folders += [f for root in package_folders() for f in glob.glob(f"{root}/*/bin")]
    for folder in folders:
        path = os.path.join(folder, name)
        if os.access(path, os.X_OK):
            return path
    return None


def python_with_torch(environment):
    """(python, "") with PyTorch, or (None, why)."""
    tried = []
    for python in dict.fromkeys([sys.executable, shutil.which("python3") or sys.executable]):
        done = run([python, "-c", "import torch; print(torch.__version__)"], environment, 90)
        if done.status == 0:
            return python, done.text.strip().splitlines()[-1]
        tried.append(python)
    return None, "PyTorch is not installed for " + ", ".join(tried)


def cpu_name():
    try:
        for line in open("/proc/cpuinfo", encoding="utf-8"):
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.machine()


def describe(environment):
    """What the report says of the machine."""
    said = {"processor": cpu_name(), "cores": len(os.sched_getaffinity(0)),
            "system": platform.freedesktop_os_release().get("PRETTY_NAME", "")
            if hasattr(platform, "freedesktop_os_release") and
            os.path.exists("/etc/os-release") else "",
            "kernel": platform.release(), "python": platform.python_version()}
    smi = shutil.which("nvidia-smi")
    if smi:
        done = run([smi, "--query-gpu=name,driver_version,memory.total",
                    "--format=csv,noheader"], environment, 20)
        if done.status == 0:
            said["nvidia_smi"] = done.text.strip().splitlines()
    versions = {}
    for folder in library_folders():
        for path in glob.glob(f"{folder}/lib*.so.*"):
            match = re.match(r"lib(nvrtc|cublasLt|cudnn|nccl|cupti)\.so\.(\d[\d.]*)$",
                             os.path.basename(path))
            if match and match.group(1) not in versions:
                versions[match.group(1)] = os.path.basename(path) + " in " + folder
    said["libraries"] = versions
    return said


def versions(machine):
    """Lines about the driver and NVIDIA's libraries, of what describe() found."""
    return [f"driver    {line}" for line in machine.get("nvidia_smi", [])] + [
        f"library   {name}: {where}" for name, where in machine.get("libraries", {}).items()]


class Bundle:
    """The programs and files: of a bundle that was unpacked, or of a build."""

    def __init__(self, root, build, work):
        self.work = pathlib.Path(work)
        self.root = root
        packed = root / "payload.tar.xz"
        if packed.exists():
            self.home = self.work / "payload"
            unpack(packed, self.home)
            self.bin, self.lib = self.home / "bin", self.home / "lib"
            self.files = self.home
            if (self.home / "cache").is_dir():  # what was compiled beforehand
                shutil.copytree(self.home / "cache", self.work / "cache", dirs_exist_ok=True)
        else:
            self.home = None
            self.bin, self.lib = build / "bin", build / "lib"
            self.files = root

    def fixtures(self):
        return self.files / "conformance" / "fixtures"

    def environment(self):
        """For our programs; others get os.environ."""
        e = dict(os.environ)
        e["BERTH_CUDA_LIBRARIES"] = ":".join(library_folders())
        e["BERTH_CACHE_DIR"] = str(self.work / "cache")
        e["BERTH_OFFLINE"] = "1"
        e["BERTH_FIXTURES"] = str(self.fixtures())
        for name in list(e):
            if name.startswith("GTEST_") or name == "BERTH_SIM":
                del e[name]
        if self.home is not None:
            e["LD_LIBRARY_PATH"] = ":".join(
                p for p in (str(self.lib), e.get("LD_LIBRARY_PATH", "")) if p)
            if not glob.glob("/etc/OpenCL/vendors/*.icd") and "OCL_ICD_VENDORS" not in e:
                e["OCL_ICD_VENDORS"] = str(self.home / "vendors")
        data = self.files / "data"
        if data.is_dir():
            e.setdefault("BERTH_DATA", str(data))
        return e


def unpack(packed, home):
    """Unpacks the payload unless this very one lies there already."""
    import tarfile
    stamp = home / "unpacked"
    state = f"{packed.stat().st_size} {packed.stat().st_mtime_ns}"
    if stamp.exists() and stamp.read_text() == state:
        return
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    with tarfile.open(packed, "r:xz") as tar:
        tar.extractall(home)
    stamp.write_text(state)


def devices(bundle, environment, limit_s=150):
    """(the document of `berth devices --why --json`, "") or (None, why). From an image that was
    never read, opening CUDA's libraries takes a minute."""
    done = run([bundle.bin / "berth", "devices", "--why", "--json"], environment, limit_s)
    try:
        return json.loads(done.text[done.text.index("{"):done.text.rindex("}") + 1]), ""
    except ValueError:
        return None, f"`berth devices` gave no document: {done.text.strip()[-300:]}"
