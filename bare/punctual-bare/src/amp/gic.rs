//! The parts of the interrupt controller that belong to this CPU: its interface, and its private
//! interrupts, which are those below 32. The distributor belongs to Linux. This module writes only
//! to distributor registers in which ones have an effect and zeros do not, and only for the one
//! interrupt that is sent to Linux.
//!
//! *ARM Generic Interrupt Controller Architecture Specification*, IHI 0048B (version 2), IHI 0069
//! (version 3).

use core::arch::asm;

use super::shared::shared;
use super::watch;
use crate::interrupt::Controller;

/// The interrupt of the physical timer of each core, for [`watch`].
const WATCH: u32 = 30;

/// Passed to the app instead of an interrupt number to ask it to end. No controller uses this
/// number.
const STOP: u32 = u32::MAX;

/// The priority of all interrupts, in the middle.
const PRIORITY: u8 = 0x80;
/// An acknowledged number from here on is not an interrupt.
const SPURIOUS: u32 = 1020;

const SET_ENABLE: usize = 0x100;
const CLEAR_ENABLE: usize = 0x180;
const SET_PENDING: usize = 0x200;
const CLEAR_PENDING: usize = 0x280;
const CLEAR_ACTIVE: usize = 0x380;
const PRIORITIES: usize = 0x400;
/// Version 2 only: pending SGIs, one byte each.
const CLEAR_PENDING_SGI: usize = 0xF10;

/// GICv3: offset of the redistributor's interrupt registers from its other registers.
const SGI_FRAME: usize = 0x1_0000;
const WAKER: usize = 0x14;

fn is_v2() -> bool {
    shared().gic == 2
}

/// Returns the address of the registers of the interrupts below 32.
fn own() -> usize {
    if is_v2() { shared().distributor as usize } else { shared().interface as usize + SGI_FRAME }
}

/// The parts of the controller that belong to this CPU. An acknowledged interrupt is its number.
#[derive(Clone, Copy, Debug)]
pub struct LinuxGic;

impl Controller for LinuxGic {
    const TIMER: u32 = 27;
    /// There is no other core to ring, and no interrupt has this number.
    const BELL: u32 = crate::cores::BELL;
    type Acknowledged = u32;

    unsafe fn init() {
        init();
    }

    /// Does nothing: there is no other core.
    unsafe fn init_core() {}

    fn acknowledge() -> Option<u32> {
        acknowledge()
    }

    fn number(acknowledged: u32) -> u32 {
        acknowledged
    }

    /// Does nothing: an acknowledged interrupt has ended.
    fn end(_: u32) {}

    /// Does nothing: there is no other core.
    fn ring(_: u32) {}

    /// Every interrupt of the image is delivered to this core.
    fn route(_: u32, _: u32) -> bool {
        true
    }

    fn enable(number: u32) {
        enable(number);
    }

    fn disable(number: u32) {
        disable(number);
    }
}

fn read(address: usize) -> u32 {
    // SAFETY: the loader of the image has mapped these registers as devices, and no memory depends
    // on them.
    unsafe { (address as *const u32).read_volatile() }
}

fn write(address: usize, value: u32) {
    // SAFETY: as in `read`; these registers do not affect interrupts of Linux.
    unsafe { (address as *mut u32).write_volatile(value) };
}

fn init() {
    if !is_v2() {
        // The firmware may have put the redistributor to sleep along with the CPU.
        let waker = shared().interface as usize + WAKER;
        write(waker, read(waker) & !0b10);
        while read(waker) & 0b100 != 0 {}
    }
    forget();
    for number in 0..32 {
        // SAFETY: as in `write`; these registers support byte accesses.
        unsafe { ((own() + PRIORITIES + number) as *mut u8).write_volatile(PRIORITY) };
    }
    if is_v2() {
        write(shared().interface as usize + 0x04, 0xF0);
        write(shared().interface as usize, 1);
    } else {
        // SAFETY: the interface of this CPU through system registers, with interrupts masked: SRE,
        // PMR, BPR1, CTLR (an end of interrupt also deactivates it), IGRPEN1.
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

/// Disables all private interrupts of this CPU and clears their pending and active states.
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

/// Hands the controller back to Linux in the state that hotplug leaves. Linux would never end an
/// interrupt that was still pending when the CPU returns.
pub(super) fn leave() {
    forget();
    if is_v2() {
        write(shared().interface as usize, 0);
    } else {
        // SAFETY: no further interrupt is delivered to this CPU, which is about to be turned off.
        unsafe { asm!("msr S3_0_C12_C12_7, xzr", "isb", options(nostack)) };
    }
}

/// Acknowledges and immediately ends the next pending interrupt. Interrupts are masked until it has
/// been handled, so none can occur in between. For a doorbell, version 2 requires the complete
/// number that it returned, which includes the CPU that rang.
fn acknowledge() -> Option<u32> {
    loop {
        let number = if is_v2() {
            let given = read(shared().interface as usize + 0x0C);
            if given & 0x3FF < SPURIOUS {
                write(shared().interface as usize + 0x10, given);
            }
            given & 0x3FF
        } else {
            let given: u64;
            // SAFETY: acknowledges the pending interrupt and ends it if there is one.
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
                    return Some(STOP);
                }
            }
            number => return Some(number),
        }
    }
}

fn enable(number: u32) {
    if number < 32 {
        write(own() + SET_ENABLE, 1 << number);
    }
}

fn disable(number: u32) {
    if number < 32 {
        write(own() + CLEAR_ENABLE, 1 << number);
    }
}

/// Interrupts Linux, which wakes the waiting threads there.
pub fn ring() {
    let doorbell = shared().doorbell;
    shared().rings.fetch_add(1, core::sync::atomic::Ordering::Release);
    // SAFETY: makes prior writes visible to the interrupted CPU.
    unsafe { asm!("dsb sy", options(nostack)) };
    write(shared().distributor as usize + SET_PENDING + 4 * (doorbell / 32) as usize, 1 << (doorbell % 32));
}
