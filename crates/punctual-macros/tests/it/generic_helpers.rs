#[punctual::app]
mod app {
    use punctual::prelude::*;

    fn add(mut counter: impl Mutex<T = u32>, n: u32) -> u32 {
        counter.lock(|counter| {
            *counter += n;
            *counter
        })
    }

    fn twice<M: Mutex<T = u32>>(counter: &mut M) {
        counter.lock(|counter| *counter *= 2);
    }

    fn whole(shared: &mut low::SharedResources<'_>) -> u32 {
        twice(&mut shared.counter);
        shared.counter.lock(|counter| shared.other.lock(|other| *counter + *other))
    }

    #[shared]
    struct Shared {
        counter: u32,
        other: u32,
    }

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        low::spawn().unwrap();
        (Shared { counter: 1, other: 5 }, Local {})
    }

    #[task(shared = [counter, other])]
    fn low(mut cx: low::Context) {
        assert_eq!(whole(&mut cx.shared), 7);
        high::spawn().unwrap();
        assert_eq!(add(cx.shared.counter, 1), 7);
        punctual::shutdown();
    }

    #[task(priority = 2, shared = [counter])]
    fn high(mut cx: high::Context) {
        twice(&mut cx.shared.counter);
        add(cx.shared.counter, 2);
    }
}

#[test]
fn runs() {
    assert_eq!(main(), std::process::ExitCode::SUCCESS);
}
