//! Panics, kernels that refuse the guard's operations, and environment variables.

use punctual::Config;
use punctual::config::Guard;

use super::{UNSEEN, config, each, has_line, privileges, process};
use test_skip::{Need, skip};

#[punctual::app(main = false)]
mod app {
    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        falls::spawn().expect("it has room");
        (Shared {}, Local {})
    }

    #[task(priority = 1)]
    fn falls(_: falls::Context) {
        let number = std::hint::black_box(5);
        panic!("with a text of {number} words");
    }
}

#[test]
#[ignore = "a program of the test below"]
fn panics() {
    let report = app::run(config(Guard::Stop)).expect("nothing can be missing");
    println!("{report}");
    process::exit(report.exit_code().into());
}

#[test]
fn allocating_panic_counts_as_panic() {
    each("ends::panics", "", |ended, _| {
        assert_eq!(ended.code, 101, "{}", ended.output);
        assert!(has_line(ended, &["`falls` panicked: with a text of 5 words"]), "{}", ended.output);
        assert!(!ended.output.contains("guard: "), "{}", ended.output);
    });
}

#[punctual::app(main = false)]
mod pushing {
    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        numbers: Vec<u64>,
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        pushes::spawn().expect("it has room");
        (Shared {}, Local { numbers: Vec::new() })
    }

    #[task(priority = 1, local = [numbers])]
    fn pushes(cx: pushes::Context) {
        cx.local.numbers.push(1);
        println!("printed by the job");
        punctual::shutdown();
    }
}

/// Makes the kernel refuse the guard's operations from now on. Returns whether it can.
fn refuse() -> bool {
    const PR_SET_SYSCALL_USER_DISPATCH: u32 = 59;
    let load = |offset| libc::sock_filter { code: 0x20, jt: 0, jf: 0, k: offset };
    let unless = |value, skip| libc::sock_filter { code: 0x15, jt: 0, jf: skip, k: value };
    let answer = |answer| libc::sock_filter { code: 0x06, jt: 0, jf: 0, k: answer };
    let first = if cfg!(target_endian = "little") { 16 } else { 20 };
    let mut filter = [
        load(0),
        unless(libc::SYS_prctl as u32, 3),
        load(first),
        unless(PR_SET_SYSCALL_USER_DISPATCH, 1),
        answer(libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        answer(libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the program is valid, its jumps end within it, and it lives for the calls.
    unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program) == 0
    }
}

#[test]
#[ignore = "a program of the test below"]
fn refused() {
    if !refuse() {
        return println!("NO FILTERS");
    }
    let report = pushing::run(config(Guard::Report)).expect("nothing can be missing");
    println!("{report}");
    assert!(report.settings.notes.iter().any(|note| note.contains(UNSEEN)), "{report}");
}

#[test]
fn reports_kernel_without_filters_and_still_guards_memory() {
    for time in super::TIMES {
        let mut program = process::program("ends::refused");
        program.env("PUNCTUAL_PORT", time);
        privileges::no_runaways(&mut program);
        let ended = process::start(program).end();
        if ended.output.contains("NO FILTERS") {
            skip(Need::Seccomp, "a kernel that dispatches no calls");
            continue;
        }
        assert_eq!(ended.code, 0, "{}", ended.output);
        assert!(has_line(&ended, &["punctual: ", UNSEEN]), "{}", ended.output);
        assert!(has_line(&ended, &["guard: pushes: allocation"]), "{}", ended.output);
        assert!(!has_line(&ended, &["guard: pushes: write"]), "{}", ended.output);
    }
}

#[test]
#[ignore = "a program of the test below"]
fn by_environment() {
    let code = match pushing::run(Config::from_env()) {
        Ok(report) => {
            println!("{report}");
            report.exit_code()
        }
        Err(error) => {
            println!("{error}");
            error.exit_code()
        }
    };
    process::exit(code.into());
}

#[test]
fn environment_selects_guard_mode() {
    let cases = [
        (None, 0, false, ""),
        (Some("off"), 0, false, ""),
        (Some("report"), 0, true, ""),
        (Some("stop"), 1, true, "the guard found `pushes`"),
        (Some("yes"), 2, false, "PUNCTUAL_GUARD=yes is invalid; set it to report, stop or off"),
    ];
    for (value, code, found, words) in cases {
        let mut program = process::program("ends::by_environment");
        program.env("PUNCTUAL_PORT", "virtual");
        if let Some(value) = value {
            program.env("PUNCTUAL_GUARD", value);
        }
        let ended = process::start(program).end();
        assert_eq!(ended.code, code, "{value:?}: {}", ended.output);
        assert!(ended.output.contains(words), "{value:?}: {}", ended.output);
        assert_eq!(has_line(&ended, &["guard: pushes: allocation"]), found, "{value:?}: {}", ended.output);
    }
}
