//! Starting the cores of QEMU's `virt`, which are powered off: PSCI's CPU_ON. *Arm Power State
//! Coordination Interface*, DEN 0022, 5.6.

use core::arch::{asm, naked_asm};

use super::StartCores;

/// CPU_ON, with arguments of the size of a register.
const CPU_ON: usize = if cfg!(target_pointer_width = "64") { 0xC400_0003 } else { 0x8400_0003 };

/// The calls of the firmware that QEMU emulates.
#[derive(Clone, Copy, Debug)]
pub struct Psci;

impl StartCores for Psci {
    /// Sleeps: such a core does not run before it is started.
    #[unsafe(naked)]
    unsafe extern "C" fn park() -> ! {
        naked_asm!("2:", "wfi", "b 2b")
    }

    fn start(core: u32, entry: usize) -> bool {
        let result: isize;
        // SAFETY: the firmware changes only these registers, and the core starts at an entry for
        // secondary cores.
        unsafe {
            #[cfg(target_arch = "arm")]
            asm!(
                ".arch_extension virt",
                "hvc #0",
                inout("r0") CPU_ON => result,
                inout("r1") core => _,
                inout("r2") entry => _,
                inout("r3") 0 => _,
                options(nostack),
            );
            #[cfg(target_arch = "aarch64")]
            asm!(
                "hvc #0",
                inout("x0") CPU_ON => result,
                inout("x1") u64::from(core) => _,
                inout("x2") entry => _,
                inout("x3") 0_u64 => _,
                options(nostack),
            );
        }
        result as i32 == 0
    }
}
