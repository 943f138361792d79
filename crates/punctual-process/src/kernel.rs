//! Names of the kernel and of the machine.

/// Names reported by `uname`; all are empty if a sandbox refuses the system call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kernel {
    /// Operating system, such as `Linux`.
    pub system: String,
    /// Host name.
    pub node: String,
    /// Release, such as `6.12.74-rt`.
    pub release: String,
    /// Version, which contains PREEMPT_RT and the build date.
    pub version: String,
    /// Architecture, such as `x86_64`.
    pub machine: String,
}

impl Kernel {
    /// Reads the names of the running kernel.
    #[must_use]
    pub fn running() -> Self {
        let mut names = std::mem::MaybeUninit::<libc::utsname>::zeroed();
        // SAFETY: `names` is valid for writes; all-zero, the value after a refused call, is valid
        // and means empty strings.
        let names = unsafe {
            libc::uname(names.as_mut_ptr());
            names.assume_init()
        };
        let text = |field: &[libc::c_char]| {
            // `c_char` is signed on x86-64 and unsigned on aarch64.
            let bytes: Vec<u8> =
                field.iter().flat_map(|byte| byte.to_ne_bytes()).take_while(|&byte| byte != 0).collect();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        Self {
            system: text(&names.sysname),
            node: text(&names.nodename),
            release: text(&names.release),
            version: text(&names.version),
            machine: text(&names.machine),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    use super::*;
    use crate::child::{BoundedCommand, TEST_LIMIT};

    /// Runs this test again, in a process that may not call `uname`.
    const REFUSED: &str = "PUNCTUAL_TEST_REFUSED";

    #[test]
    fn reads_kernel_names() {
        let kernel = Kernel::running();
        assert_eq!((kernel.system.as_str(), kernel.machine.as_str()), ("Linux", std::env::consts::ARCH));
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
        assert_eq!(kernel.release, release.trim_end());
    }

    #[test]
    fn leaves_names_empty_if_sandbox_refuses_uname() {
        if std::env::var_os(REFUSED).is_some() {
            assert_eq!(Kernel::running(), Kernel::default());
            return;
        }
        let mut command = Command::new(std::env::current_exe().unwrap());
        let test = "kernel::tests::leaves_names_empty_if_sandbox_refuses_uname";
        command.args(["--exact", test]).env(REFUSED, "1");
        // SAFETY: between fork and exec the closure makes system calls only.
        unsafe { command.pre_exec(refuse_uname) };
        let output = command.output_within(TEST_LIMIT).unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }

    fn refuse_uname() -> io::Result<()> {
        let statement = |code: u32, jf, k| libc::sock_filter { code: code as u16, jt: 0, jf, k };
        let filter = [
            // The number of the system call is the first word of `struct seccomp_data`.
            statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
            statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, libc::SYS_uname as u32),
            statement(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
            statement(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ALLOW),
        ];
        let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
        // SAFETY: the kernel copies the program, which is valid and returns on every path.
        let is_refused = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
                || libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) != 0
        };
        if is_refused { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}
