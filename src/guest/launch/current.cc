// Calls that change which stream a handle denotes for a thread: changes of its current context, and the end
// of a stream. Each hook calls the driver and records the change (fences.h, this_thread.h).
#include "guest/launch/fences.h"

using namespace carve::guest;

namespace {

template <auto Entry, class... A>
CUresult moved(A... a) {
  context_moved();
  return driver<Entry>(a...);
}

template <auto Entry>
CUresult ended(CUstream stream) {
  stream_ends(stream);
  return driver<Entry>(stream);
}

}  // namespace

CUresult cuCtxSetCurrent(CUcontext context) { return moved<&cuCtxSetCurrent>(context); }
CUresult cuCtxPushCurrent(CUcontext context) { return moved<&cuCtxPushCurrent>(context); }
CUresult cuCtxPushCurrent_v2(CUcontext context) { return moved<&cuCtxPushCurrent_v2>(context); }
CUresult cuCtxPopCurrent(CUcontext* context) { return moved<&cuCtxPopCurrent>(context); }
CUresult cuCtxPopCurrent_v2(CUcontext* context) { return moved<&cuCtxPopCurrent_v2>(context); }

CUresult cuStreamDestroy(CUstream stream) { return ended<&cuStreamDestroy>(stream); }
CUresult cuStreamDestroy_v2(CUstream stream) { return ended<&cuStreamDestroy_v2>(stream); }
