#[punctual::app]
mod app {
    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        none::spawn().unwrap();
        one::spawn(1).unwrap();
        (Shared {}, Local {})
    }

    #[task]
    fn none(_: none::Context) {}

    #[task(priority = 2, capacity = 4)]
    fn one(_cx: one::Context<'_>, a: u32) {
        many::spawn(a, (2, 3), 4, "five").unwrap();
    }

    #[task(priority = 1)]
    fn many(many::Context { .. }: many::Context, mut a: u32, (b, c): (u32, u32), _: u32, e: &'static str) {
        a += b + c;
        assert_eq!((a, e), (6, "five"));
        // At the level of this task, so neither of them runs before it has ended.
        assert!(none::spawn().is_ok());
        assert!(none::spawn().is_err());
        last::spawn(Box::new(8)).unwrap();
        assert_eq!(*last::spawn(Box::new(9)).unwrap_err().into_inner(), 9);
    }

    #[task]
    fn last(_: last::Context, boxed: Box<u32>) {
        assert_eq!(*boxed, 8);
        punctual::shutdown();
    }
}

#[test]
fn runs() {
    assert_eq!(main(), std::process::ExitCode::SUCCESS);
}
