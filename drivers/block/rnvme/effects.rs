// SPDX-License-Identifier: GPL-2.0

//! The effects of commands, which the controller's log tells of, as far as they matter for users.
//!
//! They say in part who may send which command.
//!
//! Pure: imports nothing of the kernel, so it can be compiled and tested without one.

use super::user_command::{
    admin_op,
    op,
    Moves,
    UserCommand, //
};

/// What a task needs so that it may send a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Permission {
    /// A file of the device that it has open.
    Granted,
    /// `CAP_SYS_ADMIN`, too.
    Administrator,
    /// No capability is enough.
    Refused,
}

/// How a user has opened a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Opened {
    /// For writing.
    pub(crate) for_writing: bool,
    /// It is a partition.
    pub(crate) is_partition: bool,
}

/// What commands do, as the controller says: a word for each opcode.
pub(crate) struct Effects {
    admin: [u32; 256],
    io: [u32; 256],
}

/// The command is supported.
const SUPPORTED: u32 = 1 << 0;
/// It may change the content of blocks.
const BLOCKS: u32 = 1 << 1;
/// It may change the capabilities of a namespace.
const NAMESPACE: u32 = 1 << 2;
/// It may change which namespaces there are.
const INVENTORY: u32 = 1 << 3;
/// It may change the capabilities of the controller.
const CONTROLLER: u32 = 1 << 4;
/// Whether the next field is to be ignored.
const RELAXED: u32 = 3 << 14;
/// No other command may be in progress, of those that this field says.
const EXCLUSIVE: u32 = 7 << 16;
/// The command knows how to select a vendor's variant.
const UUID_SELECTION: u32 = 1 << 19;
/// What the command is about.
const SCOPE: u32 = 0xfff << 20;

/// What is to be done after a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Aftermath {
    /// Look for namespaces.
    pub(crate) scan: bool,
    /// Tell that a reset may be needed.
    pub(crate) tell: bool,
}

impl Effects {
    /// Reads the log of a controller, if it has one, and adds what is known of some commands.
    pub(crate) fn parse(log: Option<&[u8; 4096]>) -> Self {
        let word = |index: usize| {
            let at = index * 4;
            let word = log.and_then(|log| log.get(at..at + 4)?.try_into().ok());
            word.map_or(0, u32::from_le_bytes)
        };
        let mut this = Self {
            admin: [0; 256],
            io: [0; 256],
        };
        for opcode in 0..256 {
            this.admin[opcode] = word(opcode);
            this.io[opcode] = word(256 + opcode);
        }
        this.admin[usize::from(admin_op::FORMAT)] |= NAMESPACE;
        for opcode in [
            admin_op::NAMESPACE_MANAGEMENT,
            admin_op::NAMESPACE_ATTACHMENT,
        ] {
            this.admin[usize::from(opcode)] |= INVENTORY;
        }
        for effects in &mut this.admin {
            // They need not be alone if the controller says so elsewhere.
            if *effects & RELAXED != 0 {
                *effects &= !EXCLUSIVE;
            }
        }
        // Many a controller says that it has to be alone, but it has nothing to do with I/O.
        this.admin[usize::from(admin_op::SECURITY_RECEIVE)] &= !EXCLUSIVE;
        this.admin[usize::from(admin_op::SANITIZE)] |= EXCLUSIVE;
        for opcode in [op::WRITE, op::WRITE_ZEROES, op::WRITE_UNCORRECTABLE] {
            this.io[usize::from(opcode)] |= BLOCKS;
        }
        this
    }

    /// Returns whether an administrative command may change what the blocks of a namespace are, or
    /// which namespaces there are, or may not be executed beside I/O.
    ///
    /// The driver has no I/O in progress meanwhile. That for blocks of another size would have the
    /// controller use more memory than it was given.
    pub(crate) fn excludes_io(&self, command: &UserCommand) -> bool {
        self.admin[usize::from(command.opcode)] & (NAMESPACE | INVENTORY | EXCLUSIVE) != 0
    }

    /// Returns what is to be done after an administrative command.
    pub(crate) fn aftermath(&self, command: &UserCommand) -> Aftermath {
        let effects = self.admin[usize::from(command.opcode)];
        Aftermath {
            scan: effects & (NAMESPACE | INVENTORY | EXCLUSIVE) != 0,
            tell: effects & CONTROLLER != 0,
        }
    }

    /// Returns the permission for an administrative command.
    ///
    /// A command is refused if the controller would use memory after it has completed, or if it
    /// changes the queues or the features that the driver relies on, or takes an event.
    pub(crate) fn admin_permission(command: &UserCommand) -> Permission {
        match command.opcode {
            admin_op::DELETE_SQ
            | admin_op::CREATE_SQ
            | admin_op::DELETE_CQ
            | admin_op::CREATE_CQ
            | admin_op::EVENT_REQUEST
            | admin_op::DATA_QUEUE
            | admin_op::DOORBELL_BUFFERS
            | op::FABRICS => return Permission::Refused,
            admin_op::SET_FEATURES if is_of_driver(command.high[0]) => return Permission::Refused,
            _ => (),
        }
        match (command.opcode, command.high[0] & 0xff) {
            // The namespace, the controller, and the limits of commands.
            (admin_op::IDENTIFY, 0x00 | 0x01 | 0x05 | 0x06 | 0x08) => Permission::Granted,
            _ => Permission::Administrator,
        }
    }

    /// Returns the permission for a command for a namespace, whose blocks are of that size as a
    /// power of two.
    pub(crate) fn io_permission(
        &self,
        command: &UserCommand,
        block_shift: u32,
        opened: Opened,
    ) -> Permission {
        if command.opcode == op::FABRICS {
            return Permission::Refused;
        }
        let effects = self.io[usize::from(command.opcode)] & !EXCLUSIVE;
        let harmless = SUPPORTED | BLOCKS | UUID_SELECTION | SCOPE;
        let changes = command.is_write() || effects & BLOCKS != 0;
        if opened.is_partition
            || command.opcode >= op::VENDOR
            || effects & SUPPORTED == 0
            || effects & !harmless != 0
            || (changes && !opened.for_writing)
            // It could move more than the memory that it is given.
            || command.io_moves(block_shift) == Moves::Unknown
        {
            Permission::Administrator
        } else {
            Permission::Granted
        }
    }
}

/// Returns whether the driver alone sets a feature, which is in command dword 10.
///
/// The host memory buffer among them is memory that the controller uses from then on.
fn is_of_driver(dword: u32) -> bool {
    const NUMBER_OF_QUEUES: u32 = 0x07;
    const AUTONOMOUS_POWER: u32 = 0x0c;
    const HOST_MEMORY: u32 = 0x0d;
    const KEEP_ALIVE: u32 = 0x0f;
    const HOST_BEHAVIOUR: u32 = 0x16;
    matches!(
        dword & 0xff,
        NUMBER_OF_QUEUES | AUTONOMOUS_POWER | HOST_MEMORY | KEEP_ALIVE | HOST_BEHAVIOUR
    )
}
