// SPDX-License-Identifier: GPL-2.0

//! What some devices do not do as the specification says, by their PCI identifiers.
//!
//! Pure: imports nothing of the kernel, so it can be compiled and tested without one.
//!
//! Devices that only fail in what the driver does not do, such as saving power, are not here, nor
//! are those that are only slow, or known by the name of their model.

/// What a controller is not asked for, or not believed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Quirks {
    /// Write Zeroes is broken.
    pub(crate) has_no_write_zeroes: bool,
    /// The identifiers of namespaces are those of others, too.
    pub(crate) has_bogus_ids: bool,
    /// There is no list of the identifiers of a namespace.
    pub(crate) has_no_id_list: bool,
    /// The name of the subsystem is that of others, too.
    pub(crate) has_bogus_nqn: bool,
}

impl Quirks {
    /// Returns the quirks of a device that the driver can use.
    ///
    /// # Errors
    ///
    /// What the device would need, as the end of a sentence.
    pub(crate) fn of(vendor: u16, device: u16) -> Result<Self, &'static str> {
        let is_device = |devices: &[u16]| devices.contains(&device);
        for (of, devices, need) in REFUSED {
            if *of == vendor && is_device(devices) {
                return Err(need);
            }
        }
        let is_in = |list: &[(u16, &[u16])]| {
            list.iter()
                .any(|(of, devices)| *of == vendor && is_device(devices))
        };
        Ok(Self {
            has_no_write_zeroes: is_in(NO_WRITE_ZEROES),
            has_bogus_ids: is_in(BOGUS_IDS),
            has_no_id_list: is_in(NO_ID_LIST),
            has_bogus_nqn: is_in(BOGUS_NQN),
        })
    }
}

const SLOW: &str = "a pause before it is asked whether it is ready";
const LIST_ALIGNMENT: &str = "lists of memory that are aligned to 512 bytes";
const SHORT_ADDRESSES: &str = "addresses of at most 48 bits";
const NO_MSI: &str = "to be kept from MSI, unlike MSI-X";

/// What devices need that the driver does not have.
const REFUSED: &[(u16, &[u16], &str)] = &[
    // Amazon
    (
        0x1d0f,
        &[0x0061, 0x0065, 0x8061, 0xcd00, 0xcd01, 0xcd02],
        SHORT_ADDRESSES,
    ),
    // Apple
    (0x106b, &[0x2001], "a single command at a time"),
    (0x106b, &[0x2005], "queue entries of 128 bytes"),
    // HGST and Western Digital
    (0x1c58, &[0x0003, 0x0023], SLOW),
    // Intel; the second one is that of an old QEMU
    (0x8086, &[0xf1a5], "queues with a priority"),
    (
        0x8086,
        &[0x5845],
        "to be asked for nothing but itself and its namespaces",
    ),
    // Memblaze
    (0x1c5f, &[0x0540], SLOW),
    // Micron
    (0x1344, &[0x6004], LIST_ALIGNMENT),
    // O2 Micro
    (0x1217, &[0x8760], LIST_ALIGNMENT),
    // Samsung
    (0x144d, &[0xa821, 0xa822], SLOW),
    // Sandisk
    (0x15b7, &[0x5008, 0x5009], NO_MSI),
    // Seagate
    (0x1bb1, &[0x0100], SLOW),
];

const NO_WRITE_ZEROES: &[(u16, &[u16])] = &[
    // Kingston
    (0x2646, &[0x5016, 0x5018, 0x501a, 0x501b, 0x501e, 0x502f]),
    // Lexar and SPCC
    (0x1d97, &[0x2263]),
    // Phison
    (0x1987, &[0x5019, 0x5021]),
    // Samsung
    (0x144d, &[0xa809, 0xa80b]),
    // Sandisk
    (0x15b7, &[0x2001]),
    // SK Hynix
    (0x1c5c, &[0x1504, 0x1d59]),
    // UMIS
    (0x1cc4, &[0x6302, 0x6303]),
];

const BOGUS_IDS: &[(u16, &[u16])] = &[
    // ADATA, Acer
    (0x1cc1, &[0x33f8, 0x5350]),
    (0x1dbe, &[0x5216, 0x5236]),
    // Crucial
    (0xc0a9, &[0x540a]),
    // Intel
    (0x8086, &[0x0a54]),
    // Lexar
    (0x1d97, &[0x1d97, 0x2263, 0x2269]),
    // MAXIO
    (0x1e4b, &[0x1001, 0x1002, 0x1202, 0x1602]),
    // Micron
    (0x1344, &[0x6001]),
    // Netac
    (0x1f40, &[0x1202, 0x5236]),
    // Phison
    (0x1987, &[0x5012, 0x5016]),
    // QEMU: old versions invent identifiers
    (0x1b36, &[0x0010]),
    // Realtek, as in disks of ADATA and TEAMGROUP
    (0x10ec, &[0x5762, 0x5763, 0x5765]),
    // Samsung
    (0x144d, &[0xa802, 0xa80b]),
    // Silicon Motion
    (0x126f, &[0x2262, 0x2263]),
    // SK Hynix
    (0x1c5c, &[0x174a]),
];

const NO_ID_LIST: &[(u16, &[u16])] = &[
    // Lexar
    (0x1b4b, &[0x1092]),
    // Memblaze
    (0x1c5f, &[0x0555]),
    // Silicon Motion
    (0x126f, &[0x2263]),
];

const BOGUS_NQN: &[(u16, &[u16])] = &[
    // ADATA
    (0x1cc1, &[0x8201]),
    // Intel
    (0x8086, &[0x0a54, 0xf1a6]),
    // Lexar
    (0x1b4b, &[0x1092]),
    (0x1d97, &[0x2269]),
    // Micron
    (0x1344, &[0x5407]),
    // Phison
    (0x1987, &[0x5016]),
    // Realtek
    (0x10ec, &[0x5762]),
    // Silicon Motion
    (0x126f, &[0x1001]),
];
