// "Video memory" is a bitmap of granules of 64 KiB.
#include "pma.h"

#include <linux/bitmap.h>
#include <linux/errno.h>

// Takes one run of granules. Called with the allocator's lock. Returns its address, or ~0.
static u64 take_run(PMA *pma, unsigned long granules)
{
	unsigned long at = bitmap_find_next_zero_area(pma->taken, pma->granules, 0, granules, 0);

	if (at >= pma->granules)
		return ~0ull;
	bitmap_set(pma->taken, at, granules);
	return (u64)at << granule_shift;
}

noinline __noclone u32 pmaAllocatePages(PMA *pma, size_t count, u64 size, PMA_ALLOCATION_OPTIONS *options, u64 *pages)
{
	size_t runs = options->flags & contiguous ? 1 : count;
	u64 bytes = options->flags & contiguous ? count * size : size;
	size_t i;

	spin_lock(&pma->lock);
	for (i = 0; i < runs; ++i) {
		pages[i] = take_run(pma, bytes >> granule_shift);
		if (pages[i] == ~0ull)
			break;
	}
	if (i < runs) {
		while (i-- > 0)
			bitmap_clear(pma->taken, pages[i] >> granule_shift, bytes >> granule_shift);
		spin_unlock(&pma->lock);
		return err_no_memory;
	}
	if (options->flags & pinned)
		pma->pinned_bytes += count * size;
	else
		pma->unpinned_bytes += count * size;
	spin_unlock(&pma->lock);
	return ok;
}

// With a count of 1, `size` is that of a contiguous block; otherwise of each page. Bit 31 of `flag`, which the
// driver does not use, marks unpinned memory.
noinline __noclone void pmaFreePages(PMA *pma, u64 *pages, u64 count, u64 size, u32 flag)
{
	u64 i;

	spin_lock(&pma->lock);
	for (i = 0; i < count; ++i)
		bitmap_clear(pma->taken, pages[i] >> granule_shift, size >> granule_shift);
	if (flag >> 31)
		pma->unpinned_bytes -= count * size;
	else
		pma->pinned_bytes -= count * size;
	spin_unlock(&pma->lock);
}

int pma_begin(PMA *pma, unsigned int memory_mib)
{
	spin_lock_init(&pma->lock);
	pma->granules = (unsigned long)memory_mib << (20 - granule_shift);
	pma->taken = bitmap_zalloc(pma->granules, GFP_KERNEL);
	return pma->taken ? 0 : -ENOMEM;
}

void pma_end(PMA *pma)
{
	bitmap_free(pma->taken);
}
