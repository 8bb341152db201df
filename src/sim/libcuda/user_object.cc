// User objects: a program's data with a destructor, kept alive by references that the program and its graphs
// hold (CUDA programming guide, "CUDA User Objects"). The destructor runs in the thread that releases the
// last reference, while this library holds no lock. An executable keeps its references until its launches
// have ended.
#include <algorithm>

#include "sim/libcuda/graph.h"
#include "sim/libcuda/graph_calls.h"

using namespace carve::sim;

namespace {

std::set<CUuserObject>& objects() {
  static auto* all = new std::set<CUuserObject>;
  return *all;
}

}  // namespace

namespace carve::sim {

void retain_object(CUuserObject object, unsigned count) { object->references += count; }

void release_object(CUuserObject object, unsigned count) {
  object->references -= std::min(count, object->references);
  if (object->references) return;
  objects().erase(object);
  bury(std::unique_ptr<CUuserObject_st>(object));
}

}  // namespace carve::sim

EXPORT CUresult cuUserObjectCreate(CUuserObject* out, void* data, CUhostFn destroy, unsigned int references,
                                   unsigned int flags) {
  if (const CUresult e = entered()) return e;
  constexpr unsigned no_destructor_sync = 1;  // Required, because the driver does not wait for destructors.
  if (!out || !destroy || !references || references > INT32_MAX || flags != no_destructor_sync)
    return CUDA_ERROR_INVALID_VALUE;
  const GraphLock lock;
  *out = new CUuserObject_st{data, destroy, references};
  objects().insert(*out);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuUserObjectRetain(CUuserObject object, unsigned int count) {
  if (const CUresult e = entered()) return e;
  const GraphLock lock;
  if (!objects().contains(object) || !count) return CUDA_ERROR_INVALID_VALUE;
  retain_object(object, count);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuUserObjectRelease(CUuserObject object, unsigned int count) {
  if (const CUresult e = entered()) return e;
  const GraphLock lock;
  if (!objects().contains(object) || !count || count > object->references) return CUDA_ERROR_INVALID_VALUE;
  release_object(object, count);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuGraphRetainUserObject(CUgraph g, CUuserObject object, unsigned int count,
                                        unsigned int flags) {
  if (const CUresult e = entered()) return e;
  constexpr unsigned move_flag = 1;  // The program's references become those of the graph.
  const GraphLock lock;
  if (!is_graph(g) || !objects().contains(object) || !count || flags > move_flag)
    return CUDA_ERROR_INVALID_VALUE;
  if (!(flags & move_flag)) retain_object(object, count);
  g->objects[object] += count;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuGraphReleaseUserObject(CUgraph g, CUuserObject object, unsigned int count) {
  if (const CUresult e = entered()) return e;
  const GraphLock lock;
  if (!is_graph(g)) return CUDA_ERROR_INVALID_VALUE;
  const auto held = g->objects.find(object);
  if (held == g->objects.end() || !count || count > held->second) return CUDA_ERROR_INVALID_VALUE;
  held->second -= count;
  if (held->second == 0) g->objects.erase(held);
  release_object(object, count);
  return CUDA_SUCCESS;
}
