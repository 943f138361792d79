//! `pend` releases a bound task by hand, as its event source would.
//!
//! Like an interrupt, a task is pending or not: pending it twice in `init`, where it cannot run, releases one
//! job. `idle` is below it, so there the job has run when `pend` returns.

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

    #[idle(local = [other_end])]
    fn idle(_: idle::Context) {
        println!("idle starts");
        edge::pend();
        println!("idle goes on");
        edge::pend();
        println!("idle ends");
        punctual::shutdown();
    }

    #[task(binds = line, local = [line, edges: u32 = 0])]
    fn edge(cx: edge::Context) {
        *cx.local.edges += 1;
        println!("edge {}", cx.local.edges);
    }
}
