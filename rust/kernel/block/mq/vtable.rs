// SPDX-License-Identifier: GPL-2.0

//! The table of callbacks that C calls: a driver's `struct blk_mq_ops`.
//!
//! C header: [`include/linux/blk-mq.h`](srctree/include/linux/blk-mq.h)

use super::{
    context::{
        self,
        memalloc_noio, //
    },
    disk_data::DiskData,
    pdu::RequestPdu,
    tag_set_inner::TagSetInner,
    CompletingRequest,
    HwQueue,
    IdleRequest,
    IoCompletionBatch,
    Operations,
    PlugList,
    Request,
    RequestQueue,
    StartedRequest,
    TimedOutRequest, //
};
use crate::{
    bindings,
    error::from_result,
    prelude::*, //
};
use core::{
    marker::PhantomData,
    ptr::NonNull, //
};

/// The `blk_mq_ops` of a driver.
///
/// The callbacks share one safety requirement: C calls them through this table, with arguments as
/// the header promises, for a tag set or disk that was allocated with this table.
pub(super) struct Vtable<T: Operations>(PhantomData<T>);

impl<T: Operations> Vtable<T> {
    const OPS: bindings::blk_mq_ops = bindings::blk_mq_ops {
        queue_rq: Some(Self::queue_rq),
        queue_rqs: if T::HAS_QUEUE_RQS {
            Some(Self::queue_rqs)
        } else {
            None
        },
        commit_rqs: if T::HAS_COMMIT_RQS {
            Some(Self::commit_rqs)
        } else {
            None
        },
        get_budget: None,
        put_budget: None,
        set_rq_budget_token: None,
        get_rq_budget_token: None,
        timeout: if T::HAS_TIMEOUT {
            Some(Self::timeout)
        } else {
            None
        },
        poll: if T::HAS_POLL { Some(Self::poll) } else { None },
        complete: if T::HAS_COMPLETE {
            Some(Self::complete)
        } else {
            None
        },
        init_hctx: Some(Self::init_hctx),
        exit_hctx: Some(Self::exit_hctx),
        init_request: Some(Self::init_request),
        exit_request: if core::mem::needs_drop::<RequestPdu<T>>() {
            Some(Self::exit_request)
        } else {
            None
        },
        cleanup_rq: None,
        busy: None,
        map_queues: Some(Self::map_queues),
        #[cfg(CONFIG_BLK_DEBUG_FS)]
        show_rq: None,
    };

    pub(super) const fn get() -> &'static bindings::blk_mq_ops {
        &Self::OPS
    }

    /// # Safety
    ///
    /// See [`Vtable`].
    unsafe extern "C" fn queue_rq(
        _hctx: *mut bindings::blk_mq_hw_ctx,
        data: *const bindings::blk_mq_queue_data,
    ) -> bindings::blk_status_t {
        // SAFETY: `data` is valid for this callback.
        let rq = unsafe { (*data).rq };
        // SAFETY: C passes ownership of a request that is not started, and calls this in a
        // read-side critical section of RCU, or of the tag set's SRCU.
        let rq = unsafe { IdleRequest::from_raw(rq) };
        // SAFETY: `data` is valid for this callback.
        let last = unsafe { (*data).last };
        context::run::<T::Context, _>(|| match T::queue_rq(rq, last) {
            Ok(()) => bindings::BLK_STS_OK as bindings::blk_status_t,
            // C owns the request again. It is the same request, because no other has this lifetime.
            Err(rejected) => rejected.into_raw().1.as_raw(),
        })
    }

    /// # Safety
    ///
    /// See [`Vtable`].
    unsafe extern "C" fn queue_rqs(list: *mut bindings::rq_list) {
        context::run::<T::Context, _>(|| {
            // SAFETY: C passes ownership of the requests in the list, and takes back those that are
            // left. It calls this in a read-side critical section as for `queue_rq`.
            unsafe { PlugList::with_raw(list, T::queue_rqs) }
        })
    }

    /// # Safety
    ///
    /// See [`Vtable`].
    unsafe extern "C" fn commit_rqs(hctx: *mut bindings::blk_mq_hw_ctx) {
        // SAFETY: C passes a hardware queue, which is not null.
        let hctx = unsafe { NonNull::new_unchecked(hctx) };
        // SAFETY: C calls this in a read-side critical section as for `queue_rq`. The queue was
        // initialised before that, so neither its data nor that of the disk is dropped before this
        // returns.
        let hw = unsafe { HwQueue::from_raw(hctx) };
        context::run::<T::Context, _>(|| T::commit_rqs(hw))
    }

    /// # Safety
    ///
    /// See [`Vtable`].
    unsafe extern "C" fn complete(rq: *mut bindings::request) {
        // SAFETY: C passes back a request that `StartedRequest::complete` gave up.
        T::complete(unsafe { CompletingRequest::from_raw(rq) })
    }

    /// # Safety
    ///
    /// C calls this for a timer in a request that [`StartedRequest::delay`] has started.
    unsafe extern "C" fn timer_expired(timer: *mut bindings::hrtimer) -> bindings::hrtimer_restart {
        // SAFETY: By the safety requirement.
        let pdu = unsafe { RequestPdu::<T>::of_timer(timer) };
        // SAFETY: By the safety requirement, it is the PDU of a request.
        let rq = unsafe { Request::of_pdu(pdu) };
        // SAFETY: `delay` gave up ownership to this callback.
        let rq = unsafe { StartedRequest::from_raw(rq) };
        // This function exists for every driver, but `delay` only for drivers with `timer_expired`.
        if T::HAS_TIMER_EXPIRED {
            T::timer_expired(rq);
        }
        bindings::hrtimer_restart::HRTIMER_NORESTART
    }

    /// # Safety
    ///
    /// C calls this for the timer of a disk that [`RequestQueue::start_timer`] has started.
    pub(super) unsafe extern "C" fn queue_timer_expired(
        timer: *mut bindings::hrtimer,
    ) -> bindings::hrtimer_restart {
        // SAFETY: By the safety requirement.
        let queue = unsafe { DiskData::<T>::queue_of(timer) };
        // SAFETY: By the safety requirement. Before the disk is freed, the timer is cancelled,
        // which waits for this callback.
        let queues = unsafe { RequestQueue::from_raw(queue) };
        if T::HAS_QUEUE_TIMER_EXPIRED {
            T::queue_timer_expired(queues);
        }
        bindings::hrtimer_restart::HRTIMER_NORESTART
    }

    /// # Safety
    ///
    /// See [`Vtable`].
    unsafe extern "C" fn timeout(rq: *mut bindings::request) -> bindings::blk_eh_timer_return {
        // SAFETY: C holds a reference to the request, which it found by its tag, and has waited for
        // `queue_rq` to return.
        let rq = unsafe { TimedOutRequest::from_raw(rq) };
        memalloc_noio(|| T::timeout(rq).as_raw())
    }

    /// # Safety
    ///
    /// See [`Vtable`].
    unsafe extern "C" fn poll(
        hctx: *mut bindings::blk_mq_hw_ctx,
        batch: *mut bindings::io_comp_batch,
    ) -> c_int {
        // A task that polls may use the index of a queue that was removed by a change of their
        // number.
        let Some(hctx) = NonNull::new(hctx) else {
            return 0;
        };
        // SAFETY: C holds a reference to `q_usage_counter`, so the hardware queues of the disk are
        // not removed. It trusts that the index is one of this disk, or was.
        let hw = unsafe { HwQueue::from_raw(hctx) };
        let ended = memalloc_noio(|| match NonNull::new(batch) {
            // SAFETY: The batch is valid for this callback, and C ends the requests in it
            // afterwards.
            Some(batch) => T::poll(hw, unsafe { IoCompletionBatch::from_raw(batch) }),
            None => T::poll(hw, &mut IoCompletionBatch::new()),
        });
        ended.try_into().unwrap_or(c_int::MAX)
    }

    /// # Safety
    ///
    /// See [`Vtable`].
    unsafe extern "C" fn init_hctx(
        hctx: *mut bindings::blk_mq_hw_ctx,
        shared: *mut c_void,
        index: c_uint,
    ) -> c_int {
        // SAFETY: C passes the `driver_data` of the tag set, which outlives its hardware queues.
        let shared = unsafe { &*shared.cast::<TagSetInner<T>>() };
        // SAFETY: C is initialising a hardware queue, which has a request queue.
        let queue = unsafe { (*hctx).queue };
        // SAFETY: The request queue is that of a disk, or one without a disk. Its data was
        // initialised before it and outlives it.
        let queue = unsafe { DiskData::<T>::of_queue(queue) }.data();
        shared.reserves.revoke();
        from_result(|| {
            let make = || T::init_hw_queue(queue, &shared.data, index);
            // C may reuse a hardware queue that is still stopped. This does not run it, because it
            // has no requests.
            //
            // SAFETY: C is initialising the hardware queue, so it is allocated. Its disk is new, or
            // frozen.
            unsafe { bindings::blk_mq_start_stopped_hw_queue(hctx, true) };
            // SAFETY: As above. The index of the queue is set, and C dispatches no requests to it.
            memalloc_noio(|| unsafe { shared.retired.install(hctx, make) })?;
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// See [`Vtable`].
    unsafe extern "C" fn exit_hctx(hctx: *mut bindings::blk_mq_hw_ctx, index: c_uint) {
        // SAFETY: C is exiting a hardware queue, which has a request queue.
        let queue = unsafe { (*hctx).queue };
        // SAFETY: As above. The request queue has a tag set.
        let set = unsafe { (*queue).tag_set };
        // SAFETY: The tag set outlives its hardware queues.
        let shared = unsafe { TagSetInner::<T>::from_raw(set) };
        // SAFETY: C calls this once for each success of `init_hctx`, when no request can enter the
        // hardware queue any more.
        unsafe { shared.retired.retire(hctx) };
        // During a change of the number of queues, C next allocates this queue again, or another
        // one. After the allocation it calls `init_hctx`, which revokes the access.
        if shared.maps.is_requested(index) {
            shared.reserves.grant();
        }
    }

    /// # Safety
    ///
    /// See [`Vtable`].
    unsafe extern "C" fn init_request(
        set: *mut bindings::blk_mq_tag_set,
        rq: *mut bindings::request,
        _hw_queue: c_uint,
        _node: c_int,
    ) -> c_int {
        // SAFETY: C is initialising a request of the tag set.
        let shared = unsafe { TagSetInner::<T>::from_raw(set) };
        memalloc_noio(|| {
            let init = RequestPdu::<T>::new(Self::timer_expired, T::init_request(&shared.data));
            // SAFETY: C is initialising a request.
            let pdu = unsafe { Request::pdu_of(Request::cast_from(rq)) };
            // SAFETY: The PDU is allocated, by `cmd_size`, and not initialised. It does not move.
            unsafe { pin_init::raw_init(pdu, init) }
        });
        0
    }

    /// # Safety
    ///
    /// See [`Vtable`].
    unsafe extern "C" fn exit_request(
        _set: *mut bindings::blk_mq_tag_set,
        rq: *mut bindings::request,
        _hw_queue: c_uint,
    ) {
        memalloc_noio(|| {
            // SAFETY: C is exiting a request.
            let pdu = unsafe { Request::<T>::pdu_of(Request::cast_from(rq)) };
            // SAFETY: C calls this once for each `init_request`, for a request that is not in use.
            unsafe { pdu.drop_in_place() }
        });
    }

    /// # Safety
    ///
    /// See [`Vtable`].
    unsafe extern "C" fn map_queues(set: *mut bindings::blk_mq_tag_set) {
        // SAFETY: C requests the maps of a tag set.
        let shared = unsafe { TagSetInner::<T>::from_raw(set) };
        // Also revokes the access after a failure, when C has exited the queues that it had
        // initialised.
        shared.reserves.revoke();
        // C may have frozen the disks, so no I/O may be waited for, nor with the lock of the tables
        // held.
        memalloc_noio(|| {
            // SAFETY: As above. C does not use the maps during this call.
            unsafe { shared.maps.apply(set) }
        });
    }
}
