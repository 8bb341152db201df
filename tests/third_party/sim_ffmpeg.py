"""Runs Debian's unmodified ffmpeg with the simulated driver; its CUDA filters must start and run.

usage: sim_ffmpeg.py BUILD_DIRECTORY Uploads 25 frames, scales them on the "device" and downloads them; then
copies frames through the device without a kernel and compares the picture's checksum with that of the same
frames without a device. Exits with status 77 without ffmpeg.
"""
import os
import shutil
import subprocess
import sys
import tempfile

build = os.path.abspath(sys.argv[1])
libraries = os.path.join(build, "lib", "carve", "sim")
sim = os.path.join(build, "bin", "carve-sim")
if not shutil.which("ffmpeg"):
    print("ffmpeg is not installed: skipped")
    sys.exit(77)
if b"scale_cuda" not in subprocess.run(["ffmpeg", "-hide_banner", "-filters"], capture_output=True).stdout:
    print("this ffmpeg has no CUDA filters: skipped")
    sys.exit(77)

SOURCE = ["-f", "lavfi", "-i", "testsrc=duration=1:size=640x360:rate=25"]
CUDA = ["-init_hw_device", "cuda=cu:0", "-filter_hw_device", "cu"]


def ffmpeg(*arguments):
    command = ["ffmpeg", "-hide_banner", "-nostdin", "-loglevel", "error", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, env=environment)
    print(f"{'ok   ' if done.returncode == 0 else 'FAILS'} {' '.join(command)}")
    if done.returncode != 0:
        print(done.stderr)
        sys.exit(1)
    return done.stdout


with tempfile.TemporaryDirectory(prefix="carve-sim.") as directory:
    subprocess.run([sim, "create", directory, "a10", "--force"], check=True, stdout=subprocess.DEVNULL)
    log = os.path.join(directory, "log")
    environment = dict(os.environ, SIMGPU_DIR=directory, LD_LIBRARY_PATH=libraries, SIMGPU_LOG=log)
    ffmpeg(*CUDA, *SOURCE, "-vf", "format=nv12,hwupload_cuda,scale_cuda=320:180,hwdownload,format=nv12", "-f", "null", "-")
    through = ffmpeg(*CUDA, *SOURCE, "-vf", "format=nv12,hwupload_cuda,hwdownload,format=nv12", "-f", "md5", "-")
    without = ffmpeg(*SOURCE, "-vf", "format=nv12", "-f", "md5", "-")
    print(f"{'ok   ' if through == without else 'FAILS'} frames come back unchanged: {through.strip()}")
    if through != without:
        sys.exit(1)
    if os.path.exists(log):
        print("ffmpeg called functions that are not simulated:\n" + open(log).read())
