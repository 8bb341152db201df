"""Tests carve-sim as users call it: with valid arguments, with invalid arguments, and on sets in use.

usage: sim_tool.py BUILD_DIRECTORY
"""
import json
import os
import subprocess
import sys
import tempfile

build = os.path.abspath(sys.argv[1])
sim = os.path.join(build, "bin", "carve-sim")
libraries = os.path.join(build, "lib", "carve", "sim")


def check(message, holds, seen=""):
    print(("ok    " if holds else "FAILS ") + message + (f": {seen}" if not holds else ""))
    if not holds:
        sys.exit(1)


def call(*words):
    return subprocess.run([sim, *words], capture_output=True, text=True)


def refused(status, part, *words):
    done = call(*words)
    one_line = done.stderr.startswith("carve-sim: ") and done.stderr.count("\n") == 1
    check(f"carve-sim {' '.join(words)}: status {status}, '{part}'",
          done.returncode == status and part in done.stderr and one_line, (done.returncode, done.stderr))


with tempfile.TemporaryDirectory(prefix="carve-sim.") as top:
    d = os.path.join(top, "set")
    check("--help", call("--help").returncode == 0 and "carve-sim create DIR SPEC" in call("--help").stdout)
    check("profiles", "demo15" in call("profiles").stdout and " 15360 MiB usable" in call("profiles").stdout)
    listed = json.loads(call("profiles", "-o", "json").stdout)
    check("profiles -o json", {"profile", "name", "usable_bytes"} <= set(listed[0]) and
          [x["profile"] for x in listed if x["usable_bytes"] == 15360 << 20])
    refused(2, "unknown format; use json", "profiles", "-o", "yaml")
    refused(2, "--force is not an option of profiles", "profiles", "--force")
    refused(2, "-o is not an option of create", "create", d, "a10", "-o", "json")
    refused(2, "no command given")
    refused(2, "unknown command 'dance'", "dance")
    refused(2, "is not an option", "show", d, "--colour")
    refused(2, "needs a value", "create", d, "a10", "--seed")
    refused(2, "takes a directory and a specification", "create", d)
    refused(1, "no profile is named 'a11'", "create", d, "a11")
    refused(1, "not between 1 and 16", "create", d, "a10x17")
    refused(1, "not between 1 and 16", "create", d, "a10x0")
    refused(1, "has 17 devices", "create", d, "a10x16,t4")
    refused(1, "there is no file", "create", d, "nowhere.yaml")
    refused(1, "holds no device set", "show", d)
    refused(1, "cannot open a device set", "fault", d, "clear")

    check("create", call("create", d, "a10x2,t4x1,a100-80", "--seed", "1").returncode == 0)
    shown = json.loads(call("show", d, "-o", "json").stdout)
    check("show -o json", [x["profile"] for x in shown["devices"]] == ["a10", "a10", "t4", "a100-80"])
    uuids = [x["uuid"] for x in shown["devices"]]
    check("UUIDs differ", len(set(uuids)) == 4)
    check("create over an unused set", call("create", d, "a10x2,t4x1,a100-80", "--seed", "1").returncode == 0)
    again = [x["uuid"] for x in json.loads(call("show", d, "-o", "json").stdout)["devices"]]
    check("--seed repeats the UUIDs", uuids == again)
    refused(2, "unknown format; use json", "show", d, "-o", "xml")
    refused(2, "is not a fault", "fault", d, "earthquake")
    refused(2, "takes the code", "fault", d, "xid")
    refused(2, "is not a whole number", "fault", d, "xid", "x")
    refused(1, "--device 4: the set has devices 0 to 3", "fault", d, "hung-kernel", "--device", "4")
    refused(1, "does not use this set", "fault", d, "xid", "31", "--pid", "1")
    refused(2, "is not a duration", "fault", d, "slow-nvml", "5")
    refused(2, "is not a size", "fault", d, "out-of-memory", "--above", "5")

    private = os.path.join(top, "private")
    subprocess.run(["sh", "-c", f"umask 077; exec {sim} create {private} a10"], check=True, stdout=subprocess.DEVNULL)
    modes = {name: os.stat(os.path.join(private, name)).st_mode & 0o777 for name in os.listdir(private) if name != "memory"}
    check("every user may read and write a set under any umask", os.stat(private).st_mode & 0o777 == 0o755 and modes ==
          {"set.bin": 0o666, "device0.bin": 0o666, "clients.lock": 0o666, "kernels.rules": 0o644, "kernel.log": 0o644, "driver": 0o644}, modes)
    check("every user may share memory", os.stat(os.path.join(private, "memory")).st_mode & 0o777 == 0o777)

    occupied = os.path.join(top, "occupied")
    os.mkdir(occupied)
    open(os.path.join(occupied, "thesis.tex"), "w").close()
    refused(1, "holds other files", "create", occupied, "a10")

    spec = os.path.join(top, "mixed.yaml")

    def set_file(text):
        with open(spec, "w") as f:
            f.write(text)
        return spec

    set_file("""
driver: {version: 535.104.05, cuda: 12.2}
devices:
  - {profile: h100-80, count: 2, numa: 0}
  - {profile: t4, numa: 1, memory: {native: 8192MiB, reserved: 192MiB}}
nvlink:
  - [0, 1, 18]
""")
    mixed = os.path.join(top, "mixed")
    created = call("create", mixed, spec)
    check("a set from a file", created.returncode == 0)
    shown = json.loads(call("show", mixed, "-o", "json").stdout)
    check("with its driver", shown["driver"] == "535.104.05" and shown["cuda"] == 12020, shown)
    check("and its memory", shown["devices"][2]["free_bytes"] == 8000 << 20)
    check("which names the folder of its libraries", f"libraries in {libraries}/535 on" in created.stdout, created.stdout)
    set_file("{driver: {version: 550.54.14}, devices: [{profile: a10}]}")
    check("a driver's version", call("create", mixed, spec).returncode == 0)
    shown = json.loads(call("show", mixed, "-o", "json").stdout)
    check("gives it its CUDA version", shown["driver"] == "550.54.14" and shown["cuda"] == 12040, shown)
    check("a driver in one word", f"libraries in {libraries}/470 on" in call("create", mixed, "a10x2,t4@470").stdout)
    shown = json.loads(call("show", mixed, "-o", "json").stdout)
    check("has its version", shown["driver"] == "470.256.02" and shown["cuda"] == 11040 and len(shown["devices"]) == 3, shown)
    def load(*words):
        return subprocess.run([sim.replace("carve-sim", "carve-load"), *words], capture_output=True, text=True,
                              env=dict(os.environ, SIMGPU_DIR=mixed, LD_LIBRARY_PATH=f"{libraries}/470"))

    for lookup in "dlsym", "getproc":
        done = load("--allocate", "64MiB", "--lookup", lookup, "--no-touch")
        check(f"carve-load runs over it by {lookup}", done.returncode == 0, done.stderr)
    for words, name in ((["--launch", "extended"], "cuLaunchKernelEx"), (["--graphs"], "cuGraphAddKernelNode_v2")):
        done = load("--kernels", "1ms", "--seconds", "0.1", *words)
        check(f"carve-load {words[-1]} needs CUDA 12", done.returncode == 1 and f"this driver has no {name} (CUDA 12)" in done.stderr,
              done.stderr)
    refused(1, "'471' is not a driver that can be simulated; the drivers are 470, 525", "create", mixed, "a10@471")
    set_file("{driver: {version: 560.35.03}, devices: [{profile: a10}]}")
    check("a driver of unknown names has all names", f"libraries in {libraries} on" in call("create", mixed, spec).stdout)
    for text, part in (("devices: 5", "list named devices"), ("devices: [{profile: a10, count: x}]", "not a whole number"),
                       ("devices: [{profile: a10, memory: {native: 12}}]", "not a size"), ("devices: [{count: 1}]", "must have a profile"),
                       ("devices: [{profile: a10, memory: {native: 100MiB}}]", "native must be larger than reserved"),
                       ("devices: [{profile: a10}]\nnvlink: [[0, 1, 2]]", "not between 0 and 0"), ("{{{", "mixed.yaml")):
        set_file(text)
        done = call("create", mixed, spec)
        check(f"{text!r} is refused with '{part}'", done.returncode == 1 and part in done.stderr, done.stderr)

    holder = subprocess.Popen(
        [sys.executable, "-c", "import ctypes,sys; assert ctypes.CDLL('libcuda.so.1').cuInit(0) == 0; print(flush=True); sys.stdin.read()"],
        env=dict(os.environ, SIMGPU_DIR=d, LD_LIBRARY_PATH=libraries), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    holder.stdout.readline()
    refused(1, "is in use", "create", d, "a10")
    check("--force replaces a set in use", call("create", d, "a10", "--force").returncode == 0)
    holder.kill()
    holder.wait()
