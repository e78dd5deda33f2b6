// SPDX-License-Identifier: GPL-2.0
/* DMA mapping of the memory of requests: inline functions. */

#include <linux/blk-mq-dma.h>
#include <linux/dma-mapping.h>

/* The largest size that can be mapped at all, and the largest that can be mapped fast. */
__rust_helper size_t rust_helper_blk_dma_max_size(struct device *dev)
{
	return dma_max_mapping_size(dev);
}

__rust_helper size_t rust_helper_blk_dma_opt_size(struct device *dev)
{
	return dma_opt_mapping_size(dev);
}

#ifdef CONFIG_BLOCK

/* rust/kernel/block/mq/dma_mapping.rs has room for the iterator, and reads what it returns. */
static_assert(sizeof(struct blk_dma_iter) <=
	      ALIGN(sizeof(dma_addr_t) + sizeof(u32), sizeof(u64)) + 14 * sizeof(u64));
static_assert(offsetof(struct { char c; struct blk_dma_iter iter; }, iter) <=
	      offsetof(struct { char c; u64 number; }, number));
static_assert(offsetof(struct blk_dma_iter, addr) == 0);
static_assert(offsetof(struct blk_dma_iter, len) == sizeof(dma_addr_t));

/*
 * Maps the memory of a request, which has some, if it is a single segment. Returns whether it needs
 * to be unmapped, -EAGAIN if it may consist of several segments or is that of another device, or
 * -ENOMEM.
 */
__rust_helper int rust_helper_blk_dma_map_single(struct request *rq,
						 struct device *dev,
						 dma_addr_t *addr)
{
	struct bio_vec bv = mp_bvec_iter_bvec(rq->bio->bi_io_vec, rq->bio->bi_iter);

	if (unlikely(bv.bv_len != blk_rq_bytes(rq) || is_pci_p2pdma_page(bv.bv_page)))
		return -EAGAIN;
	*addr = dma_map_phys(dev, bvec_phys(&bv), bv.bv_len, rq_dma_dir(rq), 0);
	if (unlikely(dma_mapping_error(dev, *addr)))
		return -ENOMEM;
	return dma_need_unmap(dev);
}

/* Memory of other devices is refused: all of it in a request is of the same device. */
__rust_helper bool rust_helper_blk_dma_map_start(struct request *rq,
						 struct device *dev,
						 struct dma_iova_state *state,
						 void *opaque)
{
	struct bio_vec bv = mp_bvec_iter_bvec(rq->bio->bi_io_vec, rq->bio->bi_iter);
	struct blk_dma_iter *iter = opaque;

	if (is_pci_p2pdma_page(bv.bv_page)) {
		iter->status = BLK_STS_INVAL;
		return false;
	}
	return blk_rq_dma_map_iter_start(rq, dev, state, iter);
}

__rust_helper bool rust_helper_blk_dma_map_next(struct request *rq,
						struct device *dev, void *iter)
{
	return blk_rq_dma_map_iter_next(rq, dev, iter);
}

__rust_helper blk_status_t rust_helper_blk_dma_map_status(const void *opaque)
{
	const struct blk_dma_iter *iter = opaque;

	return iter->status;
}

/* Returns whether all segments were mapped to the range in @state, by an IOMMU. */
__rust_helper bool rust_helper_blk_dma_is_iova(struct dma_iova_state *state)
{
	return dma_use_iova(state);
}

/* Returns whether a bounce buffer is in use. The size is at most that of a request. */
__rust_helper bool rust_helper_blk_dma_iova_bounces(const struct dma_iova_state *state)
{
	return state->__size & DMA_IOVA_USE_SWIOTLB;
}

/* Returns whether the segment that was mapped last needs to be unmapped. */
__rust_helper bool rust_helper_blk_dma_need_unmap(struct device *dev)
{
	return dma_need_unmap(dev);
}

/*
 * The same if dma_need_unmap() was false before: only the first bounce buffer of a device makes it
 * true.
 */
__rust_helper bool rust_helper_blk_dma_has_bounced(struct device *dev)
{
	return dma_dev_need_sync(dev);
}

__rust_helper void rust_helper_blk_dma_unmap(struct request *rq,
					     struct device *dev,
					     dma_addr_t addr, u32 len)
{
	dma_unmap_phys(dev, addr, len, rq_dma_dir(rq), 0);
}

__rust_helper void rust_helper_blk_dma_unmap_iova(struct request *rq,
						  struct device *dev,
						  dma_addr_t addr, u32 len,
						  bool bounces)
{
	struct dma_iova_state state = {
		.addr = addr,
		.__size = len | (bounces ? DMA_IOVA_USE_SWIOTLB : 0),
	};

	dma_iova_destroy(dev, &state, len, rq_dma_dir(rq), 0);
}

#endif /* CONFIG_BLOCK */
