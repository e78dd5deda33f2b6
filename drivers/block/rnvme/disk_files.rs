// SPDX-License-Identifier: GPL-2.0

//! The files of a disk in sysfs: which namespace it is of.

use super::{
    identify::{
        controller::Controller,
        descriptors::Identifiers, //
    },
    io_queue::Namespace, //
};
use core::fmt;
use kernel::{
    device_class::Attribute,
    prelude::*,
    str::CString, //
};

/// Bytes in hexadecimal, with what separates them.
struct Hex<'a>(&'a [u8], &'a str);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, byte) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str(self.1)?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

/// An identifier of 128 bits, in five groups.
pub(crate) struct Uuid(pub(crate) [u8; 16]);

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = &self.0;
        for (at, range) in [0..4, 4..6, 6..8, 8..10, 10..16].into_iter().enumerate() {
            if at > 0 {
                f.write_str("-")?;
            }
            write!(f, "{}", Hex(&bytes[range], ""))?;
        }
        Ok(())
    }
}

/// Returns the name by which a namespace is known wherever it is: the best that it has.
pub(crate) fn worldwide_name(
    identity: &Controller,
    nsid: u32,
    ids: &Identifiers,
) -> Result<CString> {
    match ids {
        Identifiers {
            uuid: Some(uuid), ..
        } => CString::try_from_fmt(format_args!("uuid.{}", Uuid(*uuid))),
        Identifiers {
            nguid: Some(nguid), ..
        } => CString::try_from_fmt(format_args!("eui.{}", Hex(nguid, ""))),
        Identifiers {
            eui64: Some(eui), ..
        } => CString::try_from_fmt(format_args!("eui.{}", Hex(eui, ""))),
        _ => {
            let vendor = identity.vendor;
            let serial = Hex(identity.serial.as_str().as_bytes(), "");
            let model = Hex(identity.model.as_str().as_bytes(), "");
            CString::try_from_fmt(format_args!(
                "nvme.{vendor:04x}-{serial}-{model}-{nsid:08x}"
            ))
        }
    }
}

/// The files.
pub(crate) const ATTRIBUTES: &[Attribute<Namespace>] = &[
    Attribute::ro(c"eui", |this: &Namespace, page| match this.ids.eui64 {
        Some(eui) => writeln!(page, "{}", Hex(&eui, " ")),
        None => Err(ENXIO),
    })
    .only_if(|this| this.ids.eui64.is_some()),
    Attribute::ro(c"metadata_bytes", |_this: &Namespace, page| {
        writeln!(page, "0")
    }),
    Attribute::ro(c"nguid", |this: &Namespace, page| match this.ids.nguid {
        Some(nguid) => writeln!(page, "{}", Uuid(nguid)),
        None => Err(ENXIO),
    })
    .only_if(|this| this.ids.nguid.is_some()),
    Attribute::ro(c"nsid", |this: &Namespace, page| {
        writeln!(page, "{}", this.nsid)
    }),
    // As C does, the other identifier where there is none of this kind.
    Attribute::ro(c"uuid", |this: &Namespace, page| {
        match this.ids.uuid.or(this.ids.nguid) {
            Some(uuid) => writeln!(page, "{}", Uuid(uuid)),
            None => Err(ENXIO),
        }
    })
    .only_if(|this| this.ids.uuid.or(this.ids.nguid).is_some()),
    Attribute::ro(c"wwid", |this: &Namespace, page| {
        writeln!(page, "{}", this.wwid.to_str()?)
    }),
];
