// The stand-in's physical memory allocator (PMA), one for each device. Names, arguments and flags are those of
// phys_mem_allocator.h of the open kernel modules.
#ifndef PMA_H
#define PMA_H

#include <linux/spinlock.h>
#include <linux/types.h>

enum { granule_shift = 16 };
enum { ok = 0, err_no_memory = 0x51 };
enum { pinned = 1 << 1, contiguous = 1 << 6 };

// The physical memory allocator of one device. Its address identifies the device to the guard.
typedef struct _PMA {
  spinlock_t lock;
  unsigned long* taken;
  unsigned long granules;
  u64 pinned_bytes, unpinned_bytes;
} PMA;
typedef struct {
  u32 flags, minimumSpeed;
  u64 physBegin, physEnd;
  u32 regionId;
  u64 alignment;
  u64 numPagesAllocated;
  u32 resultFlags;
} PMA_ALLOCATION_OPTIONS;

u32 pmaAllocatePages(PMA* pma, size_t count, u64 size, PMA_ALLOCATION_OPTIONS* options, u64* pages);
void pmaFreePages(PMA* pma, u64* pages, u64 count, u64 size, u32 flag);

int pma_begin(PMA* pma, unsigned int memory_mib);
void pma_end(PMA* pma);

#endif
