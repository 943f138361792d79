//! What of the interrupt controller belongs to this CPU: its interface, and the interrupts below 32, of which each CPU has its
//! own. The distributor is Linux's. In it this writes only to registers of which a one does something and a zero nothing, and
//! only for the one interrupt that is for Linux.
//!
//! *ARM Generic Interrupt Controller Architecture Specification*, IHI 0048B (version 2), IHI 0069 (version 3).

use core::arch::asm;

use super::shared::shared;
use super::watch;

/// The interrupt of the virtual timer of each core.
pub const TIMER: u32 = 27;
/// That of the physical timer, for [`watch`].
const WATCH: u32 = 30;

/// What an app is told when it is asked to end, in place of the number of an interrupt; no controller has this one.
const STOP: u32 = u32::MAX;

/// The priority of all interrupts, in the middle.
const PRIORITY: u8 = 0x80;
/// What is acknowledged from here on is no interrupt.
const SPURIOUS: u32 = 1020;

const SET_ENABLE: usize = 0x100;
const CLEAR_ENABLE: usize = 0x180;
const SET_PENDING: usize = 0x200;
const CLEAR_PENDING: usize = 0x280;
const CLEAR_ACTIVE: usize = 0x380;
const PRIORITIES: usize = 0x400;
/// Version 2 only: which SGIs are pending, by a byte for each.
const CLEAR_PENDING_SGI: usize = 0xF10;

/// GICv3: how far the redistributor's registers for interrupts are from its others.
const SGI_FRAME: usize = 0x1_0000;
const WAKER: usize = 0x14;

fn is_v2() -> bool {
    shared().gic == 2
}

/// Where the registers of the interrupts below 32 are.
fn own() -> usize {
    if is_v2() { shared().distributor as usize } else { shared().interface as usize + SGI_FRAME }
}

fn read(address: usize) -> u32 {
    // SAFETY: who has loaded the image has mapped these registers as devices, and no memory depends on them.
    unsafe { (address as *const u32).read_volatile() }
}

fn write(address: usize, value: u32) {
    // SAFETY: as in `read`; of Linux's interrupts these registers concern none.
    unsafe { (address as *mut u32).write_volatile(value) };
}

/// # Safety
/// As for [`init`](crate::interrupt::init).
pub(crate) unsafe fn init() {
    if !is_v2() {
        // The firmware may have put the redistributor to sleep with the CPU.
        let waker = shared().interface as usize + WAKER;
        write(waker, read(waker) & !0b10);
        while read(waker) & 0b100 != 0 {}
    }
    forget();
    for number in 0..32 {
        // SAFETY: as in `write`; these registers can be accessed by bytes.
        unsafe { ((own() + PRIORITIES + number) as *mut u8).write_volatile(PRIORITY) };
    }
    if is_v2() {
        write(shared().interface as usize + 0x04, 0xF0);
        write(shared().interface as usize, 1);
    } else {
        // SAFETY: the interface of this CPU by system registers, with interrupts masked: SRE, PMR, BPR1, CTLR (an end also
        // deactivates), IGRPEN1.
        unsafe {
            asm!(
                "mrs {0}, S3_0_C12_C12_5",
                "orr {0}, {0}, #1",
                "msr S3_0_C12_C12_5, {0}",
                "isb",
                "msr S3_0_C4_C6_0, {1}",
                "msr S3_0_C12_C12_3, xzr",
                "msr S3_0_C12_C12_4, xzr",
                "msr S3_0_C12_C12_7, {2}",
                "isb",
                out(reg) _, in(reg) 0xF0_u64, in(reg) 1_u64, options(nostack)
            );
        }
    }
    enable(WATCH);
}

/// Has nothing pending, active or enabled of what is this CPU's.
fn forget() {
    write(own() + CLEAR_ENABLE, u32::MAX);
    write(own() + CLEAR_PENDING, u32::MAX);
    write(own() + CLEAR_ACTIVE, u32::MAX);
    if is_v2() {
        for bytes in 0..4 {
            write(own() + CLEAR_PENDING_SGI + 4 * bytes, u32::MAX);
        }
    }
}

/// Leaves the controller to Linux as hotplug does; an interrupt that stayed pending would meet Linux at its return, which never
/// ends it.
pub(super) fn leave() {
    forget();
    if is_v2() {
        write(shared().interface as usize, 0);
    } else {
        // SAFETY: no interrupt comes to this CPU any more, which is about to be turned off.
        unsafe { asm!("msr S3_0_C12_C12_7, xzr", "isb", options(nostack)) };
    }
}

/// An interrupt by its number.
#[derive(Clone, Copy)]
pub(crate) struct Acknowledged(u32);

impl Acknowledged {
    pub(crate) fn number(self) -> u32 {
        self.0
    }
}

/// The next interrupt that is pending, which is ended already: as interrupts are masked until it was handled, none can come in
/// between, and of a doorbell version 2 wants back the number that it gave, with the CPU that rang.
pub(crate) fn acknowledge() -> Option<Acknowledged> {
    loop {
        let number = if is_v2() {
            let given = read(shared().interface as usize + 0x0C);
            if given & 0x3FF < SPURIOUS {
                write(shared().interface as usize + 0x10, given);
            }
            given & 0x3FF
        } else {
            let given: u64;
            // SAFETY: acknowledges what is pending, and ends it if it is an interrupt.
            unsafe {
                asm!("mrs {}, S3_0_C12_C12_0", "dsb sy", out(reg) given, options(nostack));
                if given < u64::from(SPURIOUS) {
                    asm!("msr S3_0_C12_C12_1, {}", "isb", in(reg) given, options(nostack));
                }
            }
            given as u32
        };
        match number {
            SPURIOUS.. => return None,
            WATCH => {
                if watch::tick() {
                    return Some(Acknowledged(STOP));
                }
            }
            number => return Some(Acknowledged(number)),
        }
    }
}

pub(crate) fn end(_: Acknowledged) {}

pub(crate) fn enable(number: u32) {
    if number < 32 {
        write(own() + SET_ENABLE, 1 << number);
    }
}

pub(crate) fn disable(number: u32) {
    if number < 32 {
        write(own() + CLEAR_ENABLE, 1 << number);
    }
}

/// Interrupts Linux, which wakes who waits there.
pub fn ring() {
    let door = shared().door;
    shared().rings.fetch_add(1, core::sync::atomic::Ordering::Release);
    // SAFETY: what was written before is seen by who is interrupted.
    unsafe { asm!("dsb sy", options(nostack)) };
    write(shared().distributor as usize + SET_PENDING + 4 * (door / 32) as usize, 1 << (door % 32));
}
