// SPDX-License-Identifier: GPL-2.0

//! The ioctls by which users send commands.
//!
//! A user cannot lead the controller out of the memory that the driver tells it of. All addresses
//! in a command are those of its memory, which the driver maps for that command only. What would
//! give the controller memory for longer is refused, as it is for the administrator.
//!
//! There is one exception, for the administrator alone: a command that is not known to the driver,
//! has no scatter-gather list, and has memory of two pages. If it moves more, the controller takes
//! the second page for a list of pages, as C's driver lets it for any command.

use super::{
    access::Registers,
    admin::AdminQueue,
    budget::Budget,
    effects::{
        Effects,
        Opened,
        Permission, //
    },
    io_queue::{
        self,
        Io,
        Ioctls, //
    },
    link::{
        Link,
        State,
        RESET_LIMIT, //
    },
    namespaces::Namespaces,
    params,
    queue_entry::Completion,
    user_command::{
        Arguments,
        Moves,
        Parts,
        COMMAND64_SIZE,
        COMMAND_SIZE,
        IO_SIZE,
        PADDED_IO_SIZE,
        RESULT64_AT,
        RESULT_AT, //
    }, //
};
use kernel::{
    block::mq::{
        DiskAccess,
        IoctlCaller,
        Operations,
        Passthrough,
        PassthroughOp,
        Request, //
    },
    capability,
    ioctl::{
        _IO,
        _IOW,
        _IOWR, //
    },
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    },
    time::Delta,
    uaccess::{
        UserPtr,
        UserSlice, //
    }, //
};

/// The type of the ioctls of NVMe.
const TYPE: u32 = b'N' as u32;

/// Returns the number of a namespace.
const ID: u32 = _IO(TYPE, 0x40);
/// Executes an administrative command.
const ADMIN_CMD: u32 = _IOWR::<[u8; COMMAND_SIZE]>(TYPE, 0x41);
/// Reads, writes or compares blocks.
const SUBMIT_IO: u32 = _IOW::<[u8; PADDED_IO_SIZE]>(TYPE, 0x42);
/// The same, of an ABI without padding.
const SUBMIT_IO_UNPADDED: u32 = _IOW::<[u8; IO_SIZE]>(TYPE, 0x42);
/// Executes a command for a namespace.
const IO_CMD: u32 = _IOWR::<[u8; COMMAND_SIZE]>(TYPE, 0x43);
/// Resets the controller.
const RESET: u32 = _IO(TYPE, 0x44);
/// Resets all controllers of the subsystem.
const SUBSYSTEM_RESET: u32 = _IO(TYPE, 0x45);
/// Looks for namespaces.
const RESCAN: u32 = _IO(TYPE, 0x46);
/// Executes an administrative command, whose result has 64 bits.
const ADMIN64_CMD: u32 = _IOWR::<[u8; COMMAND64_SIZE]>(TYPE, 0x47);
/// Executes a command for a namespace, whose result has 64 bits.
const IO64_CMD: u32 = _IOWR::<[u8; COMMAND64_SIZE]>(TYPE, 0x48);

/// A controller as its users see it, whether or not it is there.
#[pin_data]
pub(crate) struct Target {
    admin: Arc<AdminQueue>,
    link: Arc<Link>,
    /// Held by a command that excludes I/O. Others wait for it before they have a request, of which
    /// there are few.
    #[pin]
    exclusive: Mutex<()>,
    #[pin]
    known: Mutex<Known>,
}

/// What is known of a controller when it has answered.
struct Known {
    effects: Option<Arc<Effects>>,
    /// The most bytes of a command.
    max_transfer: u32,
    /// Until the disks are removed.
    namespaces: Option<Arc<Namespaces>>,
}

impl Target {
    pub(crate) fn new(admin: Arc<AdminQueue>, link: Arc<Link>) -> Result<Arc<Self>> {
        let known = Known {
            effects: None,
            max_transfer: 0,
            namespaces: None,
        };
        Arc::pin_init(
            pin_init!(Self {
                admin,
                link,
                exclusive <- new_mutex!(()),
                known <- new_mutex!(known),
            }),
            GFP_KERNEL,
        )
    }

    /// Returns whether the effects of commands are known.
    pub(crate) fn has_effects(&self) -> bool {
        self.known.lock().effects.is_some()
    }

    /// Says which effects the commands of the controller have.
    pub(crate) fn set_effects(&self, effects: Arc<Effects>) {
        let mut known = self.known.lock();
        let old = known.effects.replace(effects);
        drop(known);
        drop(old);
    }

    /// Says how many bytes a command of the controller may move.
    pub(crate) fn set_max_transfer(&self, max_transfer: u32) {
        self.known.lock().max_transfer = max_transfer;
    }

    /// Says which namespaces there are; [`None`] if they are not looked for any more.
    pub(crate) fn set_namespaces(&self, namespaces: Option<Arc<Namespaces>>) {
        let mut known = self.known.lock();
        let old = core::mem::replace(&mut known.namespaces, namespaces);
        drop(known);
        drop(old);
    }

    fn namespaces(&self) -> Option<Arc<Namespaces>> {
        self.known.lock().namespaces.clone()
    }

    /// Handles an ioctl of the controller itself. Returns what it returns, which is not negative:
    /// the status of a command, or 0.
    ///
    /// # Errors
    ///
    /// `ENOTTY` if there is no such ioctl; `EACCES` if the user may not send the command; `EINVAL`
    /// if the arguments are not valid, or the memory is shorter than what the command moves;
    /// `EFAULT` if memory of the user cannot be accessed; `EINTR` if the controller was stopped
    /// meanwhile; `EIO` if it does not work.
    pub(crate) fn controller_ioctl(
        &self,
        caller: IoctlCaller,
        cmd: u32,
        arg: usize,
    ) -> Result<u32> {
        match cmd {
            ADMIN_CMD | ADMIN64_CMD => self.admin_command(caller, cmd, arg),
            IO_CMD => {
                let namespaces = self.namespaces().ok_or(ENOTTY)?;
                let dev = self.link.registers.device();
                let disk = namespaces.only().inspect_err(|error| {
                    if *error == EINVAL {
                        dev_warn!(dev, "NVME_IOCTL_IO_CMD is for a single namespace only\n");
                    }
                })?;
                disk.access(|disk| self.namespace_ioctl(disk, caller, cmd, arg))
            }
            RESET | SUBSYSTEM_RESET | RESCAN if !capability::is_admin() => Err(EACCES),
            RESET => self.reset().map(|()| 0),
            SUBSYSTEM_RESET => self.reset_after(Registers::reset_subsystem).map(|()| 0),
            RESCAN => {
                self.rescan();
                Ok(0)
            }
            _ => Err(ENOTTY),
        }
    }

    /// Handles an ioctl of a namespace, or of the controller if it is one of a command for that.
    ///
    /// As for [`Self::controller_ioctl`].
    pub(crate) fn namespace_ioctl(
        &self,
        disk: &DiskAccess<'_, Io>,
        caller: IoctlCaller,
        cmd: u32,
        arg: usize,
    ) -> Result<u32> {
        match cmd {
            ID => Ok(disk.queue_data().nsid),
            ADMIN_CMD | ADMIN64_CMD => self.admin_command(caller, cmd, arg),
            IO_CMD | IO64_CMD => self.io_command(disk, caller, cmd, arg),
            SUBMIT_IO | SUBMIT_IO_UNPADDED => self.submit_io(disk, caller, arg),
            _ => Err(ENOTTY),
        }
    }

    /// Has the namespaces looked for.
    pub(crate) fn rescan(&self) {
        if let Some(namespaces) = self.namespaces() {
            namespaces.scan();
        }
    }

    /// Has the controller reset, and waits for that.
    pub(crate) fn reset(&self) -> Result {
        self.reset_after(|_| Ok(()))
    }

    fn reset_after(&self, first: impl FnOnce(&Registers) -> Result) -> Result {
        dev_warn!(
            self.link.registers.device(),
            "a user resets the controller\n"
        );
        self.link.reset(first)?;
        let state = self.link.wait_for_reset(&Budget::killable(RESET_LIMIT))?;
        if state == State::Live {
            Ok(())
        } else {
            Err(ENETRESET)
        }
    }

    fn effects(&self) -> Result<(Arc<Effects>, u32)> {
        let known = self.known.lock();
        Ok((known.effects.clone().ok_or(ENODEV)?, known.max_transfer))
    }

    fn admin_command(&self, caller: IoctlCaller, cmd: u32, arg: usize) -> Result<u32> {
        let user = Passed::read(cmd, arg)?;
        let command = user.arguments.command;
        let (effects, max_transfer) = self.effects()?;
        check(Effects::admin_permission(&command))?;
        let memory = user.memory(caller, command.admin_moves(), max_transfer)?;
        let time = user.time(params::admin_timeout());
        let excludes_io = effects.excludes_io(&command);
        let _exclusive = excludes_io.then(|| self.exclusive.lock());
        let namespaces = self.namespaces();
        let begin = || match &namespaces {
            _ if !excludes_io => Ok(None),
            Some(namespaces) => namespaces.freeze().map(Some),
            // The disks are being made, or removed.
            None => Err(ENODEV),
        };
        let rq = self.admin.request_of_user(command, time)?;
        let result = execute(rq, memory, time, begin, |rq| {
            let exchange = rq.data().lock();
            (exchange.completion, exchange.is_cancelled)
        });
        let aftermath = effects.aftermath(&command);
        if aftermath.tell {
            dev_info!(
                self.link.registers.device(),
                "a command may have changed what the controller can do; reset it to use that\n"
            );
        }
        if let (true, Some(namespaces)) = (aftermath.scan, namespaces) {
            namespaces.scan();
        }
        user.answer(result?)
    }

    fn io_command(
        &self,
        disk: &DiskAccess<'_, Io>,
        caller: IoctlCaller,
        cmd: u32,
        arg: usize,
    ) -> Result<u32> {
        let user = Passed::read(cmd, arg)?;
        let nsid = user.arguments.command.nsid;
        if nsid != disk.queue_data().nsid {
            let of_disk = disk.queue_data().nsid;
            dev_err!(
                self.link.registers.device(),
                "a command for namespace {nsid} was sent to namespace {of_disk}\n"
            );
            return Err(EINVAL);
        }
        user.answer(self.execute_io(disk, caller, &user)?)
    }

    fn submit_io(&self, disk: &DiskAccess<'_, Io>, caller: IoctlCaller, arg: usize) -> Result<u32> {
        let namespace = disk.queue_data();
        let data: [u8; IO_SIZE] = UserSlice::new(UserPtr::from_addr(arg), IO_SIZE)
            .reader()
            .read()?;
        let arguments =
            Arguments::parse_io(&data, namespace.nsid, namespace.block_shift + 9).ok_or(EINVAL)?;
        let user = Passed {
            arguments,
            result: None,
        };
        user.answer(self.execute_io(disk, caller, &user)?)
    }

    fn execute_io(
        &self,
        disk: &DiskAccess<'_, Io>,
        caller: IoctlCaller,
        user: &Passed,
    ) -> Result<Completion> {
        let command = user.arguments.command;
        let block_shift = disk.queue_data().block_shift + 9;
        let (effects, max_transfer) = self.effects()?;
        check(effects.io_permission(&command, block_shift, opened(caller)))?;
        let memory = user.memory(caller, command.io_moves(block_shift), max_transfer)?;
        let rq = disk.request(if command.is_write() {
            PassthroughOp::Out
        } else {
            PassthroughOp::In
        })?;
        let time = user.time(params::io_timeout());
        *rq.data().user.lock() = io_queue::Exchange::new(command, time);
        let begin = || Ok(());
        execute(rq, memory, time, begin, |rq| {
            let exchange = rq.data().user.lock();
            (exchange.completion, exchange.is_cancelled)
        })
    }
}

impl Ioctls for Target {
    fn ioctl(
        &self,
        disk: &DiskAccess<'_, Io>,
        caller: IoctlCaller,
        cmd: u32,
        arg: usize,
    ) -> Result<u32> {
        self.namespace_ioctl(disk, caller, cmd, arg)
    }
}

fn opened(caller: IoctlCaller) -> Opened {
    Opened {
        for_writing: caller.can_write,
        is_partition: caller.is_partition,
    }
}

/// Fails unless the current task has the permission.
fn check(permission: Permission) -> Result {
    let may = match permission {
        Permission::Granted => true,
        Permission::Administrator => capability::is_admin(),
        Permission::Refused => false,
    };
    if may {
        Ok(())
    } else {
        Err(EACCES)
    }
}

/// What a user has passed, and where the result goes.
struct Passed {
    arguments: Arguments,
    /// The address, and whether there are 64 bits.
    result: Option<(usize, bool)>,
}

impl Passed {
    /// Reads the command of an ioctl that is for one.
    fn read(cmd: u32, arg: usize) -> Result<Self> {
        let is_wide = matches!(cmd, ADMIN64_CMD | IO64_CMD);
        let at = if is_wide { RESULT64_AT } else { RESULT_AT };
        let arguments = if is_wide {
            Arguments::parse(&read::<COMMAND64_SIZE>(arg)?)
        } else {
            Arguments::parse(&read::<COMMAND_SIZE>(arg)?)
        };
        if arguments.flags != 0 {
            return Err(EINVAL);
        }
        Ok(Self {
            arguments,
            result: Some((arg.wrapping_add(at), is_wide)),
        })
    }

    /// Returns the memory of the command, if there is any, which moves so much.
    fn memory(
        &self,
        caller: IoctlCaller,
        moves: Moves,
        most: u32,
    ) -> Result<Option<(UserPtr, u32)>> {
        // A task with an ABI of 32 bits may leave anything in the others.
        let address = |address: u64| {
            if caller.is_compat {
                address as u32 as usize
            } else {
                address as usize
            }
        };
        let Arguments {
            command,
            address: data,
            len,
            metadata,
            metadata_len,
            ..
        } = self.arguments;
        let data = address(data);
        let len = if data == 0 { 0 } else { len };
        // The controller would use memory that it was not given.
        if matches!(moves, Moves::AtMost(bytes) if u64::from(len) < bytes) {
            return Err(EINVAL);
        }
        if len == 0 {
            return Ok(None);
        }
        let has_metadata = address(metadata) != 0 && metadata_len != 0;
        // Memory is mapped for one direction.
        if has_metadata || command.is_bidirectional() || len > most {
            return Err(EINVAL);
        }
        Ok(Some((UserPtr::from_addr(data), len)))
    }

    /// Returns the time of the command, in parts that are not longer than `most`.
    fn time(&self, most: Delta) -> Parts {
        // At most a day.
        Parts::new(self.arguments.timeout, most.as_millis() as u32)
    }

    /// Writes the result, and returns the status.
    fn answer(&self, completion: Completion) -> Result<u32> {
        let low = completion.result();
        if let Some((at, is_wide)) = self.result {
            let at = UserPtr::from_addr(at);
            if is_wide {
                let result = u64::from(low) | u64::from(completion.result_high()) << 32;
                UserSlice::new(at, 8).writer().write(&result)?;
            } else {
                UserSlice::new(at, 4).writer().write(&low)?;
            }
        }
        Ok(completion.status().0.into())
    }
}

/// Reads memory of the user.
fn read<const SIZE: usize>(arg: usize) -> Result<[u8; SIZE]> {
    UserSlice::new(UserPtr::from_addr(arg), SIZE)
        .reader()
        .read()
}

/// Executes the command of a request, and returns what the controller has answered, according to
/// `answer`: the completion, and whether the controller was stopped.
///
/// What `begin` returns is dropped when the command has completed. Memory of the user is accessed
/// only before and after, since that may need I/O.
fn execute<T: Operations, G>(
    mut rq: Passthrough<'_, T>,
    memory: Option<(UserPtr, u32)>,
    time: Parts,
    begin: impl FnOnce() -> Result<G>,
    answer: impl Fn(&Request<T>) -> (Option<Completion>, bool),
) -> Result<Completion> {
    if time.len != 0 {
        rq.set_timeout(Delta::from_millis(time.len.into()));
    }
    let (status, (completion, is_cancelled), copied) = match memory {
        Some((address, len)) => {
            let rq = rq.with_user_memory(address, len)?;
            let begun = begin()?;
            let done = rq.execute()?;
            drop(begun);
            (done.status(), answer(&done), done.finish())
        }
        None => {
            let _begun = begin()?;
            let done = rq.execute()?;
            (done.status(), answer(&done), Ok(()))
        }
    };
    match completion {
        Some(completion) => {
            if completion.status().is_success() {
                copied?;
            }
            Ok(completion)
        }
        None if is_cancelled => Err(EINTR),
        None => Err(status.map_or_else(Error::from, |()| EIO)),
    }
}
