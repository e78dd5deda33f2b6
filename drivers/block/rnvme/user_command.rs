// SPDX-License-Identifier: GPL-2.0

//! The commands that users make, as they pass them to an ioctl.
//!
//! The layouts are those of `include/uapi/linux/nvme_ioctl.h`.
//!
//! Pure: imports nothing of the kernel, so it can be compiled and tested without one.

use super::{
    data_pointer::DataPointer,
    queue_entry::SqEntry, //
};

/// A command that a user has made, without an identifier and without addresses.
///
/// The memory that it moves is what the driver tells the controller of. A command with another
/// address in its fields, such as that for the host memory buffer, is refused by its effects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct UserCommand {
    /// What the controller is to do.
    pub(crate) opcode: u8,
    /// The namespace.
    pub(crate) nsid: u32,
    /// The command dwords 2 and 3.
    pub(crate) low: [u32; 2],
    /// The command dwords 10 to 15.
    pub(crate) high: [u32; 6],
}

impl UserCommand {
    /// Returns whether the controller reads the memory of the command.
    pub(crate) fn is_write(&self) -> bool {
        self.opcode & 1 != 0
    }

    /// Returns whether the controller both reads the memory of the command, and writes to it.
    pub(crate) fn is_bidirectional(&self) -> bool {
        self.opcode & 3 == 3
    }

    /// Returns the entry.
    pub(crate) fn entry(&self, cid: u16, data: DataPointer) -> SqEntry {
        let dwords = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let [ten, eleven, twelve, thirteen, fourteen, fifteen] = self.high;
        // PSDT is the bits 14 and 15: with SGL, 01b.
        let psdt = u32::from(data.is_sgl) << 14;
        [
            dwords(
                u32::from(self.opcode) | psdt | u32::from(cid) << 16,
                self.nsid,
            ),
            dwords(self.low[0], self.low[1]),
            // The address of metadata.
            0,
            data.first,
            data.second,
            dwords(ten, eleven),
            dwords(twelve, thirteen),
            dwords(fourteen, fifteen),
        ]
    }
}

/// What a user passes to an ioctl.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Arguments {
    /// The command.
    pub(crate) command: UserCommand,
    /// Must be 0.
    pub(crate) flags: u8,
    /// The address of the memory of the command in that of the user, or 0.
    pub(crate) address: u64,
    /// The length of that memory in bytes, or 0.
    pub(crate) len: u32,
    /// The address of metadata in the memory of the user, or 0.
    pub(crate) metadata: u64,
    /// The length of the metadata in bytes, or 0.
    pub(crate) metadata_len: u32,
    /// After how many milliseconds the command times out, or 0.
    pub(crate) timeout: u32,
}

/// The time that a user gives a command, as parts that the timer of its request counts.
///
/// After each part the driver looks whether it may wait any longer: the user may have given the
/// command weeks, for which the removal of the disk must not wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Parts {
    /// The length of a part in milliseconds, or 0 for that of the queue.
    pub(crate) len: u32,
    /// How many follow the one that is counted.
    left: u32,
}

impl Parts {
    /// Makes parts of so many milliseconds at most of a time, which is 0 for that of the queue.
    pub(crate) fn new(time: u32, most: u32) -> Self {
        let count = time.div_ceil(most.max(1)).max(1);
        Self {
            len: time.div_ceil(count),
            left: count - 1,
        }
    }

    /// Begins with the next part; false if there is none.
    pub(crate) fn begin_next(&mut self) -> bool {
        let has_next = self.left > 0;
        self.left = self.left.saturating_sub(1);
        has_next
    }
}

/// The size of `struct nvme_passthru_cmd`.
pub(crate) const COMMAND_SIZE: usize = 72;

/// Where the result is in it: 32 bits.
pub(crate) const RESULT_AT: usize = 68;

/// The size of `struct nvme_passthru_cmd64`, which differs from the other behind the timeout only.
pub(crate) const COMMAND64_SIZE: usize = 80;

/// Where the result is in that: 64 bits.
pub(crate) const RESULT64_AT: usize = 72;

/// The size of `struct nvme_user_io`, without the padding at the end that not all ABIs have.
pub(crate) const IO_SIZE: usize = 44;

/// The size of `struct nvme_user_io` with that padding.
pub(crate) const PADDED_IO_SIZE: usize = 48;

/// Returns the `N` bytes from `AT` on. That they exist is checked at compile time.
fn bytes<const AT: usize, const N: usize, const SIZE: usize>(data: &[u8; SIZE]) -> [u8; N] {
    const { assert!(AT + N <= SIZE) };
    let mut field = [0; N];
    field.copy_from_slice(&data[AT..AT + N]);
    field
}

impl Arguments {
    /// Reads the part that `struct nvme_passthru_cmd` and `struct nvme_passthru_cmd64` share.
    pub(crate) fn parse<const SIZE: usize>(data: &[u8; SIZE]) -> Self {
        fn ne32<const AT: usize, const SIZE: usize>(data: &[u8; SIZE]) -> u32 {
            u32::from_ne_bytes(bytes::<AT, 4, SIZE>(data))
        }
        fn ne64<const AT: usize, const SIZE: usize>(data: &[u8; SIZE]) -> u64 {
            u64::from_ne_bytes(bytes::<AT, 8, SIZE>(data))
        }
        Self {
            command: UserCommand {
                opcode: data[0],
                nsid: ne32::<4, SIZE>(data),
                low: [ne32::<8, SIZE>(data), ne32::<12, SIZE>(data)],
                high: [
                    ne32::<40, SIZE>(data),
                    ne32::<44, SIZE>(data),
                    ne32::<48, SIZE>(data),
                    ne32::<52, SIZE>(data),
                    ne32::<56, SIZE>(data),
                    ne32::<60, SIZE>(data),
                ],
            },
            flags: data[1],
            metadata: ne64::<16, SIZE>(data),
            address: ne64::<24, SIZE>(data),
            metadata_len: ne32::<32, SIZE>(data),
            len: ne32::<36, SIZE>(data),
            timeout: ne32::<64, SIZE>(data),
        }
    }

    /// Reads `struct nvme_user_io`, for a namespace with blocks of that size as a power of two.
    ///
    /// [`None`] if the fields are not valid: the command is not to read, write or compare blocks,
    /// or there is an address of metadata although the controller is to insert or strip it.
    pub(crate) fn parse_io(data: &[u8; IO_SIZE], nsid: u32, block_shift: u32) -> Option<Self> {
        /// Has the controller insert or strip protection information.
        const PRACT: u16 = 1 << 13;

        let ne16 = |bytes| u16::from_ne_bytes(bytes);
        let ne32 = |bytes| u32::from_ne_bytes(bytes);
        let ne64 = |bytes| u64::from_ne_bytes(bytes);
        let (opcode, flags) = (data[0], data[1]);
        let control = ne16(bytes::<2, 2, IO_SIZE>(data));
        let blocks = ne16(bytes::<4, 2, IO_SIZE>(data));
        let metadata = ne64(bytes::<8, 8, IO_SIZE>(data));
        let first = ne64(bytes::<24, 8, IO_SIZE>(data));
        if flags != 0 || !matches!(opcode, op::READ | op::WRITE | op::COMPARE) {
            return None;
        }
        if control & PRACT != 0 && metadata != 0 {
            return None;
        }
        let tag = ne16(bytes::<40, 2, IO_SIZE>(data));
        let mask = ne16(bytes::<42, 2, IO_SIZE>(data));
        Some(Self {
            command: UserCommand {
                opcode,
                nsid,
                low: [0; 2],
                high: [
                    first as u32,
                    (first >> 32) as u32,
                    u32::from(blocks) | u32::from(control) << 16,
                    ne32(bytes::<32, 4, IO_SIZE>(data)),
                    ne32(bytes::<36, 4, IO_SIZE>(data)),
                    u32::from(tag) | u32::from(mask) << 16,
                ],
            },
            address: ne64(bytes::<16, 8, IO_SIZE>(data)),
            // At most 65,536 blocks of 64 KiB, whose bytes do not fit.
            len: (u32::from(blocks) + 1).checked_mul(1u32.checked_shl(block_shift)?)?,
            ..Self::default()
        })
    }
}

/// The opcodes of commands for I/O queues.
pub(crate) mod op {
    /// Flush.
    pub(crate) const FLUSH: u8 = 0x00;
    /// Write.
    pub(crate) const WRITE: u8 = 0x01;
    /// Read.
    pub(crate) const READ: u8 = 0x02;
    /// Write Uncorrectable.
    pub(crate) const WRITE_UNCORRECTABLE: u8 = 0x04;
    /// Compare.
    pub(crate) const COMPARE: u8 = 0x05;
    /// Write Zeroes.
    pub(crate) const WRITE_ZEROES: u8 = 0x08;
    /// Dataset Management.
    pub(crate) const DATASET_MANAGEMENT: u8 = 0x09;
    /// Verify.
    pub(crate) const VERIFY: u8 = 0x0c;
    /// The first opcode of a vendor, also of administrative commands.
    pub(crate) const VENDOR: u8 = 0x80;
    /// A command for Fabrics, also an administrative one.
    pub(crate) const FABRICS: u8 = 0x7f;
}

/// The opcodes of administrative commands.
pub(crate) mod admin_op {
    /// Delete a submission queue.
    pub(crate) const DELETE_SQ: u8 = 0x00;
    /// Create a submission queue.
    pub(crate) const CREATE_SQ: u8 = 0x01;
    /// Get Log Page.
    pub(crate) const GET_LOG: u8 = 0x02;
    /// Delete a completion queue.
    pub(crate) const DELETE_CQ: u8 = 0x04;
    /// Create a completion queue.
    pub(crate) const CREATE_CQ: u8 = 0x05;
    /// Identify.
    pub(crate) const IDENTIFY: u8 = 0x06;
    /// Set Features.
    pub(crate) const SET_FEATURES: u8 = 0x09;
    /// Asynchronous Event Request.
    pub(crate) const EVENT_REQUEST: u8 = 0x0c;
    /// Namespace Management.
    pub(crate) const NAMESPACE_MANAGEMENT: u8 = 0x0d;
    /// Firmware Image Download.
    pub(crate) const FIRMWARE_DOWNLOAD: u8 = 0x11;
    /// Namespace Attachment.
    pub(crate) const NAMESPACE_ATTACHMENT: u8 = 0x15;
    /// Directive Send.
    pub(crate) const DIRECTIVE_SEND: u8 = 0x19;
    /// Directive Receive.
    pub(crate) const DIRECTIVE_RECEIVE: u8 = 0x1a;
    /// Controller Data Queue.
    pub(crate) const DATA_QUEUE: u8 = 0x45;
    /// Doorbell Buffer Config.
    pub(crate) const DOORBELL_BUFFERS: u8 = 0x7c;
    /// Format NVM.
    pub(crate) const FORMAT: u8 = 0x80;
    /// Security Send.
    pub(crate) const SECURITY_SEND: u8 = 0x81;
    /// Security Receive.
    pub(crate) const SECURITY_RECEIVE: u8 = 0x82;
    /// Sanitize.
    pub(crate) const SANITIZE: u8 = 0x84;
}

/// How much memory a command moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moves {
    /// So many bytes, or fewer.
    AtMost(u64),
    /// It is not known to this driver.
    Unknown,
}

impl UserCommand {
    /// Returns how much an administrative command moves.
    pub(crate) fn admin_moves(&self) -> Moves {
        let [ten, eleven, ..] = self.high;
        let dwords = |last: u32| (u64::from(last) + 1) * 4;
        Moves::AtMost(match self.opcode {
            admin_op::IDENTIFY => 4096,
            admin_op::GET_LOG => {
                let last = u64::from(ten >> 16) | u64::from(eleven & 0xffff) << 16;
                (last + 1) * 4
            }
            admin_op::NAMESPACE_MANAGEMENT if ten & 0xf == 0 => 4096,
            admin_op::NAMESPACE_MANAGEMENT => 0,
            admin_op::NAMESPACE_ATTACHMENT => 4096,
            admin_op::FIRMWARE_DOWNLOAD => (u64::from(ten) + 1) * 4,
            // To enable a type of directives, or to release or allocate streams, moves nothing.
            admin_op::DIRECTIVE_SEND if matches!(eleven & 0xffff, 0x001 | 0x101 | 0x102) => 0,
            admin_op::DIRECTIVE_RECEIVE if eleven & 0xffff == 0x103 => 0,
            admin_op::DIRECTIVE_SEND | admin_op::DIRECTIVE_RECEIVE => dwords(ten),
            admin_op::SECURITY_SEND | admin_op::SECURITY_RECEIVE => eleven.into(),
            admin_op::FORMAT | admin_op::SANITIZE => 0,
            _ => return Moves::Unknown,
        })
    }

    /// Returns how much a command for a namespace moves, whose blocks are of that size as a power
    /// of two.
    pub(crate) fn io_moves(&self, block_shift: u32) -> Moves {
        let [ten, _, twelve, ..] = self.high;
        Moves::AtMost(match self.opcode {
            op::READ | op::WRITE | op::COMPARE => (u64::from(twelve & 0xffff) + 1) << block_shift,
            op::DATASET_MANAGEMENT => (u64::from(ten & 0xff) + 1) * 16,
            op::FLUSH | op::WRITE_UNCORRECTABLE | op::WRITE_ZEROES | op::VERIFY => 0,
            _ => return Moves::Unknown,
        })
    }
}
