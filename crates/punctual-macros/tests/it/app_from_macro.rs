macro_rules! app {
    ($name:ident, $count:ty, $priority:literal, $period:expr, $task:ident($arg:ident: $ty:ty) $body:block) => {
        #[punctual::app(main = false)]
        mod $name {
            use punctual::prelude::*;

            type Alias = $ty;

            #[shared]
            struct Shared {
                count: $count,
            }

            #[local]
            struct Local {}

            #[init]
            fn init(_: init::Context, worker: $ty) -> (Shared, Local) {
                $task::spawn(worker, worker).unwrap();
                (Shared { count: 0 }, Local {})
            }

            #[task(priority = $priority, shared = [count], local = [own: $ty = 0])]
            fn $task(mut cx: $task::Context, $arg: $ty, args: Alias) {
                *cx.local.own += args;
                cx.shared.count.lock(|count| *count += 1);
                $body
            }

            #[task(priority = 3, period = $period, shared = [count])]
            fn clock(mut cx: clock::Context) {
                cx.shared.count.lock(|count| *count += 1);
            }
        }
    };
}

app!(first, u64, 2, 1.millis(), tick(args: u32) {
    assert_eq!(args, 5);
    punctual::shutdown();
});

app!(second, i8, 4, punctual::Duration::from_millis(2), worker(worker: u8) {
    assert_eq!(worker, 6);
    punctual::shutdown();
});

#[test]
fn runs() {
    first::run(punctual::Config::from_env(), 5).unwrap();
    second::run(punctual::Config::from_env(), 6).unwrap();
}
