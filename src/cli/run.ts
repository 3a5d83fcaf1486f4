export { withService } from './open.ts';
