//! Function pointers with references are ordinary values, in resources and in messages.

#[punctual::app]
mod app {
    use punctual::prelude::*;

    type Reads = for<'a> fn(&'a u32) -> &'a u32;

    fn same(n: &u32) -> &u32 {
        n
    }

    #[shared]
    struct Shared {
        locked: for<'a> fn(&'a u32) -> &'a u32,
        seen: Box<dyn for<'a> Fn(&'a u32) -> &'a u32 + Send + Sync>,
        alias: Reads,
    }

    #[local]
    struct Local {
        own: for<'a, 'b> fn(&'a u32, &'b u32),
        of_idle: for<'a> fn(&'a u32) -> &'a u32,
    }

    #[init(local = [declared: for<'a> fn(&'a u32) -> &'a u32 = same])]
    fn init(_: init::Context) -> (Shared, Local) {
        takes::spawn(same, Box::new(|_| ())).unwrap();
        waits::spawn(same).unwrap();
        (Shared { locked: same, seen: Box::new(same), alias: same }, Local { own: |_, _| (), of_idle: same })
    }

    #[idle(shared = [alias], local = [of_idle])]
    fn idle(_: idle::Context) {}

    #[task(shared = [locked, alias, &seen], local = [own, declared: for<'a> fn(&'a u32) -> &'a u32 = same])]
    fn takes(
        mut cx: takes::Context,
        f: for<'a> fn(&'a u32) -> &'a u32,
        _: Box<dyn for<'a> Fn(&'a u32) + Send>,
    ) {
        assert_eq!(cx.shared.locked.lock(|locked| *locked(&2)), *f(&2));
        assert_eq!(*(cx.shared.seen)(&1), *(cx.local.declared)(&1));
        (cx.local.own)(&1, &2);
    }

    #[task(priority = 2, shared = [locked])]
    async fn waits(_: waits::Context, f: for<'a> fn(&'a u32) -> &'a u32) {
        assert_eq!(*f(&1), 1);
        punctual::delay(1.millis()).await;
        punctual::shutdown();
    }
}

#[test]
fn runs() {
    assert_eq!(main(), std::process::ExitCode::SUCCESS);
}
