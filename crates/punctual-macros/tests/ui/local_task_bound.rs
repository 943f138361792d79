#[punctual::app]
mod app {
    use std::os::unix::net::UnixStream;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        line: UnixStream,
    }

    #[init]
    fn init(_: init::Context, line: UnixStream) -> (Shared, Local) {
        (Shared {}, Local { line })
    }

    #[task]
    fn starts(_: starts::Context) {}

    #[task(local_task, binds = line, local = [line])]
    fn works(_: works::Context) {}
}

fn main() {}
