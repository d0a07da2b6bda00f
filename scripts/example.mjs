/** npm run example: runs examples/managing-concurrency in this process. */
import { importTypeScript } from './import-typescript.mjs';

await importTypeScript('examples/managing-concurrency/main.ts');
