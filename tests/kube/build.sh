#!/bin/bash
# Builds a real Kubernetes (kube-apiserver, kube-scheduler, kube-controller-manager, kubelet, kubectl),
# containerd and Kueue for tests, using only the Go toolchain and the modules in the three go.mod files. The
# programs are used only by tests and are neither committed nor shipped.
#
#   ./build.sh        afterwards the programs are in $KUBE_BUILD/bin, and Kueue's manifests in $KUBE_BUILD/kueue
#
# KUBE_BUILD is the user's cache folder by default (~/.cache/carve/kube). It holds bin/ (0.5 GB), mod/
# (downloaded modules) and cache/ (compiled packages). A second call with the same inputs does nothing;
# KUBE_LEAN=1 removes mod/ and cache/ once the programs exist. The first build takes minutes: see README.md.
set -euo pipefail

KUBE_BUILD=${KUBE_BUILD:-${XDG_CACHE_HOME:-$HOME/.cache}/carve/kube}
KUBE_BUILD=$(realpath -m "$KUBE_BUILD")
bin=$KUBE_BUILD/bin
mkdir -p "$bin"
cd "$(dirname "$0")"

export GOMODCACHE=${GOMODCACHE:-$KUBE_BUILD/mod} GOCACHE=${GOCACHE:-$KUBE_BUILD/cache} CGO_ENABLED=0
export GOFLAGS="-p=${KUBE_JOBS:-2} -buildvcs=false -modcacherw"

stamp=$(cat build.sh {.,containerd,kueue}/go.{mod,sum} <(go version) | sha256sum)
if [[ -f $bin/stamp && $(<"$bin/stamp") == "$stamp" ]]; then
  echo "kube: $bin is up to date"
  exit
fi
rm -f "$bin/stamp"

# build MODULE_FOLDER MODULE FLAGS PROGRAM...: builds one program after the other, because the linker needs
# two gigabytes for a single one.
build() {
  local folder=$1 module=$2 flags=$3
  shift 3
  for program in "$@"; do
    echo "kube: building $program"
    go -C "$folder" build -o "$bin/" -ldflags "-s -w $flags" "$module/cmd/$program"
  done
}

# Without a version the components assume v0.0.0 and misjudge each other.
version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
IFS=. read -r major minor _ <<<"${version#v}"
flags=
for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
  flags+=" -X $package.gitVersion=$version -X $package.gitMajor=$major -X $package.gitMinor=$minor -X $package.gitTreeState=clean"
done
build . k8s.io/kubernetes "$flags" kube-apiserver kube-scheduler kube-controller-manager kubelet kubectl

containerd=github.com/containerd/containerd/v2
version=$(go -C containerd list -m -f '{{.Version}}' $containerd)
build containerd $containerd "-X $containerd/version.Version=$version" containerd containerd-shim-runc-v2 ctr

kueue=sigs.k8s.io/kueue
read -r version source < <(go -C kueue list -m -f '{{.Version}} {{.Dir}}' $kueue)
build kueue $kueue "-X $kueue/pkg/version.GitVersion=$version" kueue
mkdir -p "$KUBE_BUILD/kueue"
cat "$source"/config/components/crd/bases/*.yaml >"$KUBE_BUILD/kueue/custom-resources.yaml"
cp --no-preserve=mode "$source/config/components/webhook/manifests.yaml" "$KUBE_BUILD/kueue/webhooks.yaml"

echo "$stamp" >"$bin/stamp"
if [[ ${KUBE_LEAN:-} ]]; then
  rm -rf "$KUBE_BUILD/mod" "$KUBE_BUILD/cache"
fi
