#[punctual::app(main = false)]
pub mod app {
    #![allow(clippy::needless_pass_by_value)]

    use std::collections::BTreeMap;

    type Table = BTreeMap<u8, Pair>;

    const SIZE: usize = 4;
    static NAME: &str = "other items";

    macro_rules! pair {
        ($a:expr) => {
            Pair { a: $a, b: double($a) }
        };
    }

    #[derive(Clone, Copy)]
    pub struct Pair {
        a: usize,
        b: usize,
    }

    impl Pair {
        fn sum(self) -> usize {
            self.a + self.b
        }
    }

    fn double(a: usize) -> usize {
        nested::TWO * a
    }

    mod nested {
        pub const TWO: usize = 2;
    }

    unsafe extern "C" {
        safe fn abs(n: i32) -> i32;
    }

    #[shared]
    pub struct Shared {}

    #[local]
    pub struct Local {
        table: Table,
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        inspect::spawn(NAME).unwrap();
        (Shared {}, Local { table: BTreeMap::from([(0, pair!(SIZE))]) })
    }

    #[task(local = [table])]
    fn inspect(cx: inspect::Context, name: &'static str) {
        assert_eq!(cx.local.table[&0].sum(), 12);
        assert_eq!((name, abs(-1)), (NAME, 1));
        punctual::shutdown();
    }
}

#[test]
fn runs() {
    app::run(punctual::Config::from_env()).unwrap();
}
