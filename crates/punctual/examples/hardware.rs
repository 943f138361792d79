//! `pend` releases a bound task by hand, like its event source.
//!
//! Like an interrupt, a task is pending or not: pending it twice in `init`, where it cannot run,
//! releases one job. A job is no longer pending when it runs, so it can be pended again, and runs
//! again after it has ended.

#[punctual::app]
mod app {
    use std::os::unix::net::UnixStream;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        line: UnixStream,
        other_end: UnixStream,
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        let (line, other_end) = UnixStream::pair().expect("sockets can be made");
        edge::pend();
        edge::pend();
        println!("init");
        (Shared {}, Local { line, other_end })
    }

    #[task(binds = line, local = [line, other_end, edges: u32 = 0])]
    fn edge(cx: edge::Context) {
        *cx.local.edges += 1;
        println!("edge {}", cx.local.edges);
        match *cx.local.edges {
            3 => punctual::shutdown(),
            _ => edge::pend(),
        }
        println!("the job ends");
    }
}
