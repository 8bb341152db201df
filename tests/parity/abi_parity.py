"""Compares the declarations of src/abi with NVIDIA's own headers.

usage: abi_parity.py SOURCE_DIRECTORY BUILD_DIRECTORY [INCLUDE_DIRECTORY...] An include directory contains
cuda.h, nvml.h or both. Without one, the script searches CARVE_CUDA_HEADERS (separated by colons), the
nvidia-* packages of Python and of build/venv, and /usr/local/cuda. For each header, two programs print the
declarations that both sides have: the size of every structure, the offset of every field, the value of every
enumerator and the parameters of every function (kind, size, and size of the target of a pointer). One program
uses src/abi, the other NVIDIA's header; the outputs must be equal. Exit status 77 if no header is found.
"""
import glob
import os
import re
import subprocess
import sys
import sysconfig
import tempfile

source, build = (os.path.abspath(a) for a in sys.argv[1:3])


def places():
    if sys.argv[3:]:
        return sys.argv[3:]
    if os.environ.get("CARVE_CUDA_HEADERS"):
        return os.environ["CARVE_CUDA_HEADERS"].split(":")
    packages = [sysconfig.get_paths()["purelib"], build + "/venv/lib/python3*/site-packages"]
    return sorted(sum((glob.glob(p + "/nvidia/*/include") for p in packages), glob.glob("/usr/local/cuda*/include")))


def read(path):
    return re.sub(r"//.*|/\*.*?\*/", "", open(path, errors="replace").read())


def compiled(text, *flags):
    with tempfile.TemporaryDirectory(prefix="carve-parity.") as d:
        with open(os.path.join(d, "a.cc"), "w") as f:
            f.write(text)
        done = subprocess.run(["g++", "-std=c++20", "-w", *flags, "a.cc", "-o", "a"], cwd=d, capture_output=True, text=True)
        if done.returncode:
            return None, done.stderr
        return subprocess.run([os.path.join(d, "a")], capture_output=True, text=True).stdout, ""


def fields(body):
    """Returns the names of the direct fields of a structure; the size covers the members of nested unions."""
    flat = re.sub(r"\{[^{}]*\}", "", re.sub(r"\{[^{}]*\}", "", body))
    return re.findall(r"(\w+)(?:\[\w+\])*;", flat)


def enumerators(text, kind):
    body = re.search(rf"typedef enum \w+ \{{([^{{}}]*)\}} {kind};", re.sub(r"/\*.*?\*/", "", text, flags=re.S))
    return re.findall(r"\bCU_\w+(?=\s*=)", body[1]) if body else []


# Parameters of the same size and kind have the same ABI; a template prints each parameter.
START = """
#include <cstddef>
#include <cstdio>
#include <string>
#include <type_traits>
template <class T> std::string kind() {
  if constexpr (std::is_pointer_v<T>) {
    using Target = std::remove_cv_t<std::remove_pointer_t<T>>;
    if constexpr (std::is_void_v<Target> || std::is_function_v<Target>) return "pointer";
    else if constexpr (requires { sizeof(Target); }) return "pointer-to-" + std::to_string(sizeof(Target));
    else return "handle";
  } else if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) return "integer-" + std::to_string(sizeof(T));
  else return (std::is_class_v<T> || std::is_union_v<T> ? "structure-" : "other-") + std::to_string(sizeof(T));
}
template <class F> struct Call;
template <class R, class... A> struct Call<R(A...)> {
  static std::string parameters() { return kind<R>() + " of" + ((" " + kind<A>()) + ... + ""); }
};
"""


def compare(header, include, ours, macro):
    text = "".join(read(os.path.join(source, "src", "abi", f)) for f in ours)
    theirs = read(os.path.join(include, header))
    known = set(re.findall(r"\w+", theirs))
    values = sorted(n for n in set(re.findall(r"\b([A-Za-z]\w+) = -?(?:0x[0-9a-fA-F]+|[0-9]+)\s*[,;}]", text)) if n in known)
    prints = [f'printf("{n} %lld\\n", (long long){n});' for n in values]
    structures = 0
    for name, body in re.findall(r"^(?:struct|union) (\w+) \{(.*?)^\};", text, re.S | re.M):
        if name not in known:
            continue
        structures += 1
        prints.append(f'printf("{name} %zu\\n", sizeof({name}));')
        prints += [f'printf("{name}.{x} %zu\\n", offsetof({name}, {x}));' for x in fields(body) if x in known]
    # NVIDIA renames calls by macros, so the preprocessor lists the names.
    plain = subprocess.run(["g++", "-E", "-P", f"-D{macro}", "-I" + include, "-xc++", os.path.join(include, header)], capture_output=True,
                           text=True)
    declared = set(re.findall(r"\b(\w+)\s*\(", plain.stdout))
    functions = sorted(f for f in set(re.findall(r"^(?:CUresult|nvmlReturn_t) (\w+)\(", text, re.M)) if f in declared)
    prints += [f'printf("{f} %s\\n", Call<decltype({f})>::parameters().c_str());' for f in functions]
    main = "\nint main() {\n" + "\n".join(prints) + "\n}\n"
    start = START
    a, error_a = compiled(start + "".join(f'#include "abi/{f}"\n' for f in ours) + main, "-I" + os.path.join(source, "src"))
    b, error_b = compiled(start + f'#include "{header}"\n' + main, f"-D{macro}", "-I" + include)
    missing = set(re.findall(r"error: [‘'](\w+)[’']", error_b))
    if b is None and missing:  # Names that this version has only in macros or comments.
        prints[:] = [p for p in prints if not missing & set(re.findall(r"\w+", p))]
        main = "\nint main() {\n" + "\n".join(prints) + "\n}\n"
        a, error_a = compiled(start + "".join(f'#include "abi/{f}"\n' for f in ours) + main, "-I" + os.path.join(source, "src"))
        b, error_b = compiled(start + f'#include "{header}"\n' + main, f"-D{macro}", "-I" + include)
    if a is None or b is None:
        print(f"FAILS {include}/{header}: does not compile\n{error_a}{error_b}"[:3000])
        return False
    version = re.search(r"^#define CUDA_VERSION (\d+)", theirs, re.M)
    exempt = {} if version and int(version[1]) >= NEWEST else EXEMPT
    differ = [f"  src/abi {x}, NVIDIA {y}" for x, y in zip(a.splitlines(), b.splitlines()) if x != y and x.split()[0] not in exempt]
    print(f"{'FAILS' if differ else 'ok   '} {include}/{header}: {structures} structures, {len(values)} values, {len(functions)} functions")
    print("\n".join(differ[:40]), end="\n" if differ else "")
    if unknown := [name for kind in DECIDE for name in enumerators(theirs, kind) if name not in text]:
        print(f"FAILS {include}/{header}: src/abi lacks {', '.join(unknown)}; check which hooks must treat them as a device's memory")
    return not differ and not unknown and len(values) > 100 and len(functions) > 50


# By these the guest library decides what it charges, so src/abi must know every value.
DECIDE = ["CUmemLocationType", "CUmemAllocationType"]

NEWEST = 13050  # CUDA_VERSION of the cuda.h that src/abi follows: nothing is exempt there.

# Names whose value or size differs between NVIDIA's own versions; src/abi has the newest.
EXEMPT = {
    "NVML_BRAND_COUNT": "counts the brands of its version",
    "CU_JIT_NUM_OPTIONS": "counts the options of its version",
    "CU_CTX_FLAGS_MASK": "covers the flags of its version",
    "CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS": "11.8 gave this name to the present ..._V1",
    "CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR": "11.8 gave this name to the present ..._V1",
    "CUdevSmResource": "grew inside the padding of CUdevResource, whose size is the same",
    **dict.fromkeys(("CUDA_HOST_NODE_PARAMS_v2", "CUDA_EVENT_RECORD_NODE_PARAMS", "CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_v2",
                     "CUDA_EXT_SEM_WAIT_NODE_PARAMS_v2"), "grew inside the padding of CUgraphNodeParams, whose size is the same"),
    "NVML_NVLINK_MAX_LINKS": "grows with the generations of NVLink; src/abi has that of CUDA 13.0",
    "NVML_TEMPERATURE_COUNT": "counts the sensors; src/abi has those of CUDA 13.0",
}

found, good = 0, True
for place in places():
    for header, ours, macro in (("cuda.h", ["cuda_values.h", "cuda_types.h", "cuda.h"], "__CUDA_API_VERSION_INTERNAL"),
                                ("nvml.h", ["nvml.h"], "NVML_NO_UNVERSIONED_FUNC_DEFS")):
        if os.path.exists(os.path.join(place, header)):
            found += 1
            good &= compare(header, place, ours, macro)
if not found:
    print("skipped: no cuda.h or nvml.h found (pip install -r tests/requirements.txt, or a toolkit)")
    sys.exit(77)
sys.exit(0 if good else 1)
