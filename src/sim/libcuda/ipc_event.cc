#include "sim/libcuda/ipc_event.h"

#include <cstring>

using namespace carve::sim;

namespace {

constexpr uint64_t event_magic = 0x3145435056524143;  // "CARVPCE1"
constexpr uint64_t event_page_bytes = 4096;

// The contents of a handle, which only this driver can read.
struct EventHandle {
  uint64_t magic;
  uint32_t device, segment;
  uint64_t serial;
};
static_assert(sizeof(EventHandle) <= sizeof(CUipcEventHandle));

CUresult enter(std::shared_ptr<SharedEvent> shared, CUevent* out) {
  std::shared_ptr<CUctx_st> c;
  if (const CUresult e = current(&c)) return e;
  auto* event = new CUevent_st{CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS, c.get(), nullptr, nullptr,
                               std::move(shared)};
  const std::lock_guard lock(process().mutex);
  process().events.insert(event);
  *out = event;
  return CUDA_SUCCESS;
}

}  // namespace

namespace carve::sim {

// Initially zero.
struct SharedEvent::Page {
  std::atomic<uint64_t> recorded, over;
  std::atomic<uint64_t> generation;  // Generation and slot of the process that recorded last.
  std::atomic<uint32_t> client;
};

SharedEvent::Page& SharedEvent::page() const { return *reinterpret_cast<Page*>(segment_->base()); }

CUresult SharedEvent::create(unsigned device, std::shared_ptr<SharedEvent>* out) {
  std::shared_ptr<Shared> segment;
  if (const CUresult e =
          Shared::create(device, event_page_bytes, Shared::Counted::nowhere, nullptr, &segment))
    return e;
  out->reset(new SharedEvent(std::move(segment)));
  return CUDA_SUCCESS;
}

CUresult SharedEvent::open(const CUipcEventHandle& raw, std::shared_ptr<SharedEvent>* out) {
  EventHandle h;
  std::memcpy(&h, &raw, sizeof h);
  std::shared_ptr<Shared> segment;
  if (h.magic != event_magic) return CUDA_ERROR_INVALID_VALUE;
  if (Shared::open(h.device, h.segment, h.serial, &segment) || segment->bytes() != event_page_bytes)
    return CUDA_ERROR_MAP_FAILED;
  out->reset(new SharedEvent(std::move(segment)));
  return CUDA_SUCCESS;
}

CUipcEventHandle SharedEvent::handle() const {
  const EventHandle h = {event_magic, segment_->device(), segment_->index(), segment_->serial()};
  CUipcEventHandle out = {};
  std::memcpy(&out, &h, sizeof h);
  return out;
}

uint64_t SharedEvent::begin(const std::shared_ptr<SharedEvent>& self, std::shared_ptr<void>* finish) {
  Page& p = page();
  p.generation.store(process().generation);
  p.client.store(process().slot);
  const uint64_t number = p.recorded.fetch_add(1) + 1;
  *finish = std::shared_ptr<void>(nullptr, [self, number](void*) {
    std::atomic<uint64_t>& over = self->page().over;
    for (uint64_t known = over.load(); known < number && !over.compare_exchange_weak(known, number);) {}
  });
  return number;
}

uint64_t SharedEvent::last() const { return page().recorded.load(); }

bool SharedEvent::over(uint64_t number) const {
  const Page& p = page();
  return p.over.load() >= number || !alive(process().set, p.client.load(), p.generation.load(), nullptr);
}

}  // namespace carve::sim

EXPORT CUresult cuIpcGetEventHandle(CUipcEventHandle* out, CUevent event) {
  if (const CUresult e = entered()) return e;
  const std::lock_guard lock(process().mutex);
  if (!process().events.contains(event)) return CUDA_ERROR_INVALID_HANDLE;
  if (!out || !event->shared) return CUDA_ERROR_INVALID_VALUE;
  *out = event->shared->handle();
  return CUDA_SUCCESS;
}

EXPORT CUresult cuIpcOpenEventHandle(CUevent* out, CUipcEventHandle handle) {
  if (const CUresult e = entered()) return e;
  std::shared_ptr<SharedEvent> shared;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult e = SharedEvent::open(handle, &shared)) return e;
  return enter(std::move(shared), out);
}
